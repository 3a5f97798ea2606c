// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The one internal record of a model's configuration; every dialect is a reader of it. Immutable. Empty lists and empty
 * texts mean "not given": the backend and the defaults fill them in. Made by {@link #builder} or {@link #toBuilder}.
 *
 * @param name the model's name
 * @param platform {@code onnxruntime_onnx}, …, or empty
 * @param backend the backend's name, or empty
 * @param modelFile the file (or directory) inside a version's directory, or empty for the backend's default
 * @param maxBatchSize -1 when not given; 0 when the model has no batch dimension; else {@code input} and {@code output}
 *     shapes exclude the batch dimension
 * @param inputs expected of clients
 * @param outputs given to clients
 * @param batchInputs tensors the server makes for each batch
 * @param batchOutputs outputs that are cut by the shape of an input
 * @param versionPolicy which stored versions are wanted
 * @param batching how requests are joined; null when they are run one by one
 * @param sequence how requests of one sequence are brought to one place; null for independent requests
 * @param ensemble the steps this model is made of; null for a model of its own
 * @param queue limits of the queue, whether or not there is batching
 * @param instanceGroups how many runs may go on at once, and where; empty when not given
 * @param decoupled whether a request may have any number of answers
 * @param responseCache whether answers are kept for equal requests
 * @param parameters free-form, read by the backend
 * @param labels label texts by output name, for classification
 * @param warmups requests to run before the model counts as available
 * @param optimization what the backend is asked to do for speed
 * @param operatorLibraries files of the model's directory with custom operators
 * @param metricTags labels added to the model's metrics
 * @param histogramBuckets upper bounds of the model's histograms by family, ascending
 * @param document the whole configuration in the words of Triton's {@code ModelConfig}: Map, List, String, Long, Double
 *     and Boolean by field name, enumerations by name, defaults included; empty until it has been completed
 */
public record ModelConfig(
        String name,
        String platform,
        String backend,
        String modelFile,
        int maxBatchSize,
        List<TensorSpec> inputs,
        List<TensorSpec> outputs,
        List<BatchInput> batchInputs,
        List<BatchOutput> batchOutputs,
        VersionPolicy versionPolicy,
        @Nullable Batching batching,
        @Nullable Sequence sequence,
        @Nullable Ensemble ensemble,
        Queue queue,
        List<InstanceGroup> instanceGroups,
        boolean decoupled,
        boolean responseCache,
        Map<String, String> parameters,
        Map<String, List<String>> labels,
        List<Warmup> warmups,
        Optimization optimization,
        List<String> operatorLibraries,
        Map<String, String> metricTags,
        Map<String, List<Double>> histogramBuckets,
        Map<String, Object> document) {
    /** The configuration of a model about which nothing was said but its name. */
    public static ModelConfig unspecified(String name) {
        return builder(name).build();
    }

    /** A configuration that says nothing yet but the name. */
    public static Builder builder(String name) {
        return new Builder(name);
    }

    /** This configuration, to be changed. */
    public Builder toBuilder() {
        return new Builder(this);
    }

    /** This configuration with the parts that a backend may fill in; {@code newInstances} of 0 leaves the groups as they are. */
    public ModelConfig completed(
            String newPlatform,
            String newBackend,
            int newMaxBatchSize,
            List<TensorSpec> newInputs,
            List<TensorSpec> newOutputs,
            @Nullable Batching newBatching,
            int newInstances) {
        Builder b = toBuilder()
                .platform(newPlatform)
                .backend(newBackend)
                .maxBatchSize(newMaxBatchSize)
                .inputs(newInputs)
                .outputs(newOutputs)
                .batching(newBatching);
        return (newInstances == 0 || newInstances == instances() ? b : b.instances(newInstances)).build();
    }

    /** Whether the first dimension of every tensor is the batch dimension. */
    public boolean batched() {
        return maxBatchSize > 0;
    }

    /**
     * How batches are made to fit: as configured, or {@link Fit#NONE} where requests are not joined freely, which is so
     * for sequences, whose rows cannot be copied or moved; requests with many answers are not cut.
     */
    public Fit fit() {
        if (batching == null || sequence != null) {
            return Fit.NONE;
        }
        Fit fit = batching.fit();
        return decoupled && fit.maxRequestRows() > 0
                ? new Fit(fit.allowedSizes(), fit.padVariableLength(), 0, fit.maxEnqueuedBatches())
                : fit;
    }

    /** How many runs may go on at once; 0 when not given. Passive instances do not count. */
    public int instances() {
        long sum = 0;
        for (InstanceGroup group : instanceGroups) {
            sum += group.passive() ? 0 : group.count();
        }
        return (int) Math.min(Integer.MAX_VALUE, sum);
    }

    /**
     * Everything a run is fed, under the shapes that the model sees, without the batch dimension: inputs, batch inputs,
     * controls and states. A ragged input is one flat tensor, which has the batch dimension's place and no other.
     */
    public List<TensorSpec> feeds() {
        if (batchInputs.isEmpty() && sequence == null && inputs.stream().allMatch(ModelConfig::plain)) {
            return inputs;
        }
        List<TensorSpec> feeds = new ArrayList<>();
        for (TensorSpec s : inputs) {
            Shape shape = s.ragged() && batched() ? Shape.SCALAR : s.modelShape();
            feeds.add(new TensorSpec(s.name(), s.dataType(), shape, s.optional(), s.ragged(), null));
        }
        for (BatchInput b : batchInputs) {
            for (String target : b.targets()) {
                feeds.add(new TensorSpec(target, b.dataType(), b.modelShape(inputs)));
            }
        }
        if (sequence != null) {
            for (Control c : sequence.controls()) {
                feeds.add(new TensorSpec(c.name(), c.dataType(), Shape.of(1)));
            }
            for (State s : sequence.states()) {
                feeds.add(new TensorSpec(s.inputName(), s.dataType(), s.shape()));
            }
        }
        return List.copyOf(feeds);
    }

    /** Everything a run is asked for, under the shapes that the model sees, without the batch dimension. */
    public List<TensorSpec> fetches() {
        boolean states = sequence != null && !sequence.states().isEmpty();
        if (!states && outputs.stream().allMatch(ModelConfig::plain)) {
            return outputs;
        }
        List<TensorSpec> fetches = new ArrayList<>();
        for (TensorSpec s : outputs) {
            fetches.add(new TensorSpec(s.name(), s.dataType(), s.modelShape()));
        }
        if (sequence != null) {
            for (State s : sequence.states()) {
                if (fetches.stream().noneMatch(f -> f.name().equals(s.outputName()))) {
                    fetches.add(new TensorSpec(s.outputName(), s.dataType(), s.shape()));
                }
            }
        }
        return List.copyOf(fetches);
    }

    private static boolean plain(TensorSpec spec) {
        return spec.reshape() == null && !spec.ragged();
    }

    /**
     * Which stored versions are wanted.
     *
     * @param kind the rule
     * @param count how many, for {@link Kind#LATEST}
     * @param versions which, for {@link Kind#SPECIFIC}
     */
    public record VersionPolicy(VersionPolicy.Kind kind, int count, List<Long> versions) {
        /** The highest version only. */
        public static final VersionPolicy LATEST = new VersionPolicy(VersionPolicy.Kind.LATEST, 1, List.of());

        /** The rules. */
        public enum Kind {
            /** The highest {@code count} versions. */
            LATEST,
            /** Every version. */
            ALL,
            /** The listed versions. */
            SPECIFIC
        }
    }

    /**
     * The dynamic batcher's settings.
     *
     * @param preferredSizes batch sizes to aim for, ascending; empty for the maximum only
     * @param maxQueueDelay how long a request may wait for company when nothing else holds it
     * @param preserveOrdering whether answers leave in the order the requests came
     * @param priorityLevels how many levels there are, 1 being served first; 0 for one queue without levels
     * @param defaultPriority the level of a request that names none, or none that exists
     * @param levelQueues limits of single levels; the others have those of {@link ModelConfig#queue}
     * @param fit how batches are made to fit
     */
    public record Batching(
            List<Integer> preferredSizes,
            Duration maxQueueDelay,
            boolean preserveOrdering,
            long priorityLevels,
            long defaultPriority,
            Map<Long, Queue> levelQueues,
            Fit fit) {
        /** Batches whatever is waiting, waits for nothing. */
        public static final Batching EAGER = new Batching(List.of(), Duration.ZERO, false);

        /** One level. */
        public Batching(List<Integer> preferredSizes, Duration maxQueueDelay, boolean preserveOrdering) {
            this(preferredSizes, maxQueueDelay, preserveOrdering, 0, 0, Map.of());
        }

        /** Batches as they come. */
        public Batching(
                List<Integer> preferredSizes,
                Duration maxQueueDelay,
                boolean preserveOrdering,
                long priorityLevels,
                long defaultPriority,
                Map<Long, Queue> levelQueues) {
            this(
                    preferredSizes,
                    maxQueueDelay,
                    preserveOrdering,
                    priorityLevels,
                    defaultPriority,
                    levelQueues,
                    Fit.NONE);
        }

        /** This batching, made to fit. */
        public Batching withFit(Fit newFit) {
            return new Batching(
                    preferredSizes,
                    maxQueueDelay,
                    preserveOrdering,
                    priorityLevels,
                    defaultPriority,
                    levelQueues,
                    newFit);
        }
    }

    /**
     * How batches are made to fit, in TensorFlow Serving's way.
     *
     * @param allowedSizes the only sizes a run may have, ascending; smaller batches are filled up with copies of a row
     *     whose answers are thrown away; empty for any size
     * @param padVariableLength whether inputs of different shapes are padded, each with its own first element, to the
     *     largest of them in the batch
     * @param maxRequestRows most rows of one request, which is cut into several runs when it has more than
     *     {@code maxBatchSize}; 0 when requests are never cut
     * @param maxEnqueuedBatches most batches that may wait; 0 for no limit
     */
    public record Fit(
            List<Integer> allowedSizes, boolean padVariableLength, int maxRequestRows, int maxEnqueuedBatches) {
        /** Batches as they come. */
        public static final Fit NONE = new Fit(List.of(), false, 0, 0);
    }

    /**
     * Limits of a queue.
     *
     * @param maxSize most requests that may wait; 0 for no limit
     * @param defaultTimeout longest wait of a request that names no timeout; zero for none
     * @param allowTimeoutOverride whether a request may name its own
     * @param onTimeout what becomes of a request that has waited too long
     */
    public record Queue(int maxSize, Duration defaultTimeout, boolean allowTimeoutOverride, TimeoutAction onTimeout) {
        /** No limits of its own: the server-wide ones hold. */
        public static final Queue DEFAULT = new Queue(0, Duration.ZERO, true);

        /** Rejects what has waited too long. */
        public Queue(int maxSize, Duration defaultTimeout, boolean allowTimeoutOverride) {
            this(maxSize, defaultTimeout, allowTimeoutOverride, TimeoutAction.REJECT);
        }

        /** What becomes of a request that has waited too long. */
        public enum TimeoutAction {
            /** It fails. */
            REJECT,
            /** It is served after all those that have not waited too long. */
            DELAY
        }
    }

    /**
     * The sequence batcher's settings.
     *
     * @param strategy how sequences share the instances
     * @param maxIdle how long a sequence may be silent before it ends
     * @param controls tensors that tell the model where in its sequence a request stands
     * @param states tensors that the server carries from one request of a sequence to the next
     * @param iterative whether the model may ask to see a request again
     */
    public record Sequence(
            Strategy strategy, Duration maxIdle, List<Control> controls, List<State> states, boolean iterative) {
        /** How sequences share the instances. */
        public sealed interface Strategy {}

        /**
         * Every sequence has a place of its own in the batch of one instance.
         *
         * @param maxQueueDelay how long a batch may wait for more of its places to have a request
         * @param minimumSlotUtilization share of the places, 0 to 1, that make a batch worth going before that
         */
        public record Direct(Duration maxQueueDelay, double minimumSlotUtilization) implements Strategy {}

        /**
         * Every sequence is bound to one instance, which batches requests of different sequences, oldest first.
         *
         * @param maxCandidates sequences that one instance may have at once; 0 for as many as the batch has rows
         * @param preferredSizes as in {@link Batching}
         * @param maxQueueDelay as in {@link Batching}
         * @param preserveOrdering as in {@link Batching}
         */
        public record Oldest(
                int maxCandidates, List<Integer> preferredSizes, Duration maxQueueDelay, boolean preserveOrdering)
                implements Strategy {}
    }

    /**
     * A control tensor of the sequence batcher: one element for each row.
     *
     * @param name the model's input
     * @param kind what it tells
     * @param dataType INT32, FP32 or BOOL; of the correlation id also UINT64, INT64, UINT32 or BYTES
     * @param no the value for "no"; unused for the correlation id
     * @param yes the value for "yes"; likewise
     */
    public record Control(String name, Control.Kind kind, DataType dataType, double no, double yes) {
        /** What a control tells. */
        public enum Kind {
            /** The request is the first of its sequence. */
            START,
            /** The row holds a request. */
            READY,
            /** The request is the last of its sequence. */
            END,
            /** The sequence's id. */
            CORRID
        }
    }

    /**
     * A tensor that the server carries from one request of a sequence to the next.
     *
     * @param inputName where the model reads it
     * @param outputName where the model writes it
     * @param dataType type of its elements
     * @param shape without the batch dimension; -1 for any size
     * @param initial what the first request of a sequence sees; null for zeros, or empty texts
     * @param sameBuffer whether reading and writing share one buffer
     */
    public record State(
            String inputName,
            String outputName,
            DataType dataType,
            Shape shape,
            @Nullable InitialState initial,
            boolean sameBuffer) {}

    /**
     * What the first request of a sequence sees.
     *
     * @param name for messages
     * @param shape without -1
     * @param file a file of the model's directory {@code initial_state} with the bytes of one row; empty for zeros
     */
    public record InitialState(String name, Shape shape, String file) {}

    /**
     * The steps of an ensemble.
     *
     * @param steps in the order they are written; their order of running follows from the tensors
     * @param maxInflight most requests of one step that may be under way for one request of the ensemble; 0 for no limit
     */
    public record Ensemble(List<Step> steps, int maxInflight) {}

    /**
     * One step of an ensemble.
     *
     * @param model the model that is run
     * @param version its version, or -1 for the latest
     * @param inputs ensemble tensors by the model's input
     * @param outputs ensemble tensors by the model's output
     * @param when a boolean ensemble tensor without which, or with a false element in it, the step is left out; or empty
     */
    public record Step(
            String model, long version, Map<String, String> inputs, Map<String, String> outputs, String when) {}

    /**
     * Instances of one kind.
     *
     * @param name its instances are named {@code <name>_<i>}
     * @param kind where they run
     * @param count how many, at least 1
     * @param gpus on which devices, for {@link Kind#GPU}
     * @param passive whether they are loaded without being given requests
     * @param hostPolicy name of a server-wide rule about processors; empty for none
     * @param resources what one run takes from the rate limiter
     * @param priority 1 is served twice as often as 2, and so on; 0 for 1
     */
    public record InstanceGroup(
            String name,
            InstanceGroup.Kind kind,
            int count,
            List<Integer> gpus,
            boolean passive,
            String hostPolicy,
            List<Resource> resources,
            int priority) {
        /** A group of processor instances without further wishes. */
        public static InstanceGroup cpu(String name, int count) {
            return new InstanceGroup(name, InstanceGroup.Kind.CPU, count, List.of(), false, "", List.of(), 0);
        }

        /** Where instances run. */
        public enum Kind {
            /** On a GPU where there is one that the backend can use, else on processors. */
            AUTO,
            /** On GPUs. */
            GPU,
            /** On processors. */
            CPU,
            /** Where the model says. */
            MODEL
        }

        /**
         * Something that runs take from the rate limiter and give back.
         *
         * @param name its name
         * @param global whether all devices share it
         * @param count how much of it
         */
        public record Resource(String name, boolean global, int count) {}
    }

    /**
     * A tensor that the server makes for each batch.
     *
     * @param kind what it tells
     * @param targets the model's inputs that get it
     * @param dataType INT32 or FP32
     * @param source the input it tells about
     */
    public record BatchInput(BatchInput.Kind kind, List<String> targets, DataType dataType, String source) {
        /** What a batch input tells; {@code n} is the number of requests in the batch. */
        public enum Kind {
            /** Elements of the source in each request: shape {@code [n]}. */
            ELEMENT_COUNT,
            /** The running sum of these: shape {@code [n]}. */
            ACCUMULATED_ELEMENT_COUNT,
            /** The running sum from 0 on: shape {@code [n + 1]}. */
            ACCUMULATED_ELEMENT_COUNT_WITH_ZERO,
            /** A tensor of unspecified content whose shape is {@code [greatest count]}. */
            MAX_ELEMENT_COUNT_AS_SHAPE,
            /** The source's shape without the batch dimension for each row: shape {@code [rows, rank]}. */
            ITEM_SHAPE,
            /** The same in one dimension: shape {@code [rows * rank]}. */
            ITEM_SHAPE_FLATTEN
        }

        /** Its dimensions as the model sees them, without the first. */
        Shape modelShape(List<TensorSpec> inputs) {
            if (kind != BatchInput.Kind.ITEM_SHAPE) {
                return Shape.SCALAR;
            }
            for (TensorSpec input : inputs) {
                if (input.name().equals(source)) {
                    return Shape.of(input.shape().rank());
                }
            }
            return Shape.of(-1);
        }
    }

    /**
     * Outputs that come flat and are cut by the shape of each request's input.
     *
     * @param targets the outputs
     * @param source the input
     */
    public record BatchOutput(List<String> targets, String source) {}

    /**
     * What the backend is asked to do for speed.
     *
     * @param graphLevel as the backend understands it; 0 for its default
     * @param cpuAccelerators on processors, in order of preference
     * @param gpuAccelerators on GPUs, in order of preference
     */
    public record Optimization(int graphLevel, List<Accelerator> cpuAccelerators, List<Accelerator> gpuAccelerators) {
        /** Nothing in particular. */
        public static final Optimization DEFAULT = new Optimization(0, List.of(), List.of());
    }

    /**
     * An execution accelerator.
     *
     * @param name {@code openvino}, {@code tensorrt}, …
     * @param parameters as the accelerator understands them
     */
    public record Accelerator(String name, Map<String, String> parameters) {}

    /**
     * Requests to run before a version counts as available.
     *
     * @param name for messages
     * @param batchSize rows per request; 0 skips the sample
     * @param count how often it is run
     * @param inputs what is fed, by input name
     */
    public record Warmup(String name, int batchSize, int count, Map<String, WarmupInput> inputs) {}

    /**
     * One input of a warm-up request.
     *
     * @param dataType type of its elements
     * @param shape without the batch dimension
     * @param data where the bytes come from
     * @param file the file under {@code <model>/warmup}, for {@link Data#FILE}; else empty
     */
    public record WarmupInput(DataType dataType, Shape shape, Data data, String file) {
        /** Where the bytes come from. */
        public enum Data {
            /** All zero. */
            ZERO,
            /** Random, from a fixed seed. */
            RANDOM,
            /** A file of raw bytes for one row. */
            FILE
        }
    }

    /** Collects a configuration. Every method replaces what was there and returns this. Confined to one thread. */
    public static final class Builder {
        private final String name;
        private String platform = "";
        private String backend = "";
        private String modelFile = "";
        private int maxBatchSize = -1;
        private List<TensorSpec> inputs = List.of();
        private List<TensorSpec> outputs = List.of();
        private List<BatchInput> batchInputs = List.of();
        private List<BatchOutput> batchOutputs = List.of();
        private VersionPolicy versionPolicy = VersionPolicy.LATEST;
        private @Nullable Batching batching;
        private @Nullable Sequence sequence;
        private @Nullable Ensemble ensemble;
        private Queue queue = Queue.DEFAULT;
        private List<InstanceGroup> instanceGroups = List.of();
        private boolean decoupled;
        private boolean responseCache;
        private Map<String, String> parameters = Map.of();
        private Map<String, List<String>> labels = Map.of();
        private List<Warmup> warmups = List.of();
        private Optimization optimization = Optimization.DEFAULT;
        private List<String> operatorLibraries = List.of();
        private Map<String, String> metricTags = Map.of();
        private Map<String, List<Double>> histogramBuckets = Map.of();
        private Map<String, Object> document = Map.of();

        private Builder(String name) {
            this.name = name;
        }

        private Builder(ModelConfig c) {
            name = c.name;
            platform = c.platform;
            backend = c.backend;
            modelFile = c.modelFile;
            maxBatchSize = c.maxBatchSize;
            inputs = c.inputs;
            outputs = c.outputs;
            batchInputs = c.batchInputs;
            batchOutputs = c.batchOutputs;
            versionPolicy = c.versionPolicy;
            batching = c.batching;
            sequence = c.sequence;
            ensemble = c.ensemble;
            queue = c.queue;
            instanceGroups = c.instanceGroups;
            decoupled = c.decoupled;
            responseCache = c.responseCache;
            parameters = c.parameters;
            labels = c.labels;
            warmups = c.warmups;
            optimization = c.optimization;
            operatorLibraries = c.operatorLibraries;
            metricTags = c.metricTags;
            histogramBuckets = c.histogramBuckets;
            document = c.document;
        }

        /** See {@link ModelConfig#platform}. */
        public Builder platform(String value) {
            this.platform = value;
            return this;
        }

        /** See {@link ModelConfig#backend}. */
        public Builder backend(String value) {
            this.backend = value;
            return this;
        }

        /** See {@link ModelConfig#modelFile}. */
        public Builder modelFile(String value) {
            this.modelFile = value;
            return this;
        }

        /** See {@link ModelConfig#maxBatchSize}. */
        public Builder maxBatchSize(int value) {
            this.maxBatchSize = value;
            return this;
        }

        /** See {@link ModelConfig#inputs}. */
        public Builder inputs(List<TensorSpec> value) {
            this.inputs = value;
            return this;
        }

        /** See {@link ModelConfig#outputs}. */
        public Builder outputs(List<TensorSpec> value) {
            this.outputs = value;
            return this;
        }

        /** See {@link ModelConfig#batchInputs}. */
        public Builder batchInputs(List<BatchInput> value) {
            this.batchInputs = value;
            return this;
        }

        /** See {@link ModelConfig#batchOutputs}. */
        public Builder batchOutputs(List<BatchOutput> value) {
            this.batchOutputs = value;
            return this;
        }

        /** See {@link ModelConfig#versionPolicy}. */
        public Builder versionPolicy(VersionPolicy value) {
            this.versionPolicy = value;
            return this;
        }

        /** See {@link ModelConfig#batching}. */
        public Builder batching(@Nullable Batching value) {
            this.batching = value;
            return this;
        }

        /** See {@link ModelConfig#sequence}. */
        public Builder sequence(@Nullable Sequence value) {
            this.sequence = value;
            return this;
        }

        /** See {@link ModelConfig#ensemble}. */
        public Builder ensemble(@Nullable Ensemble value) {
            this.ensemble = value;
            return this;
        }

        /** See {@link ModelConfig#queue}. */
        public Builder queue(Queue value) {
            this.queue = value;
            return this;
        }

        /** See {@link ModelConfig#instanceGroups}. */
        public Builder instanceGroups(List<InstanceGroup> value) {
            this.instanceGroups = value;
            return this;
        }

        /** See {@link ModelConfig#decoupled}. */
        public Builder decoupled(boolean value) {
            this.decoupled = value;
            return this;
        }

        /** See {@link ModelConfig#responseCache}. */
        public Builder responseCache(boolean value) {
            this.responseCache = value;
            return this;
        }

        /** See {@link ModelConfig#parameters}. */
        public Builder parameters(Map<String, String> value) {
            this.parameters = value;
            return this;
        }

        /** See {@link ModelConfig#labels}. */
        public Builder labels(Map<String, List<String>> value) {
            this.labels = value;
            return this;
        }

        /** See {@link ModelConfig#warmups}. */
        public Builder warmups(List<Warmup> value) {
            this.warmups = value;
            return this;
        }

        /** See {@link ModelConfig#optimization}. */
        public Builder optimization(Optimization value) {
            this.optimization = value;
            return this;
        }

        /** See {@link ModelConfig#operatorLibraries}. */
        public Builder operatorLibraries(List<String> value) {
            this.operatorLibraries = value;
            return this;
        }

        /** See {@link ModelConfig#metricTags}. */
        public Builder metricTags(Map<String, String> value) {
            this.metricTags = value;
            return this;
        }

        /** See {@link ModelConfig#histogramBuckets}. */
        public Builder histogramBuckets(Map<String, List<Double>> value) {
            this.histogramBuckets = value;
            return this;
        }

        /** See {@link ModelConfig#document}. */
        public Builder document(Map<String, Object> value) {
            this.document = value;
            return this;
        }

        /** One group of so many processor instances, named as the model. */
        public Builder instances(int count) {
            return instanceGroups(List.of(InstanceGroup.cpu(name, count)));
        }

        /** The configuration. */
        public ModelConfig build() {
            return new ModelConfig(
                    name,
                    platform,
                    backend,
                    modelFile,
                    maxBatchSize,
                    inputs,
                    outputs,
                    batchInputs,
                    batchOutputs,
                    versionPolicy,
                    batching,
                    sequence,
                    ensemble,
                    queue,
                    instanceGroups,
                    decoupled,
                    responseCache,
                    parameters,
                    labels,
                    warmups,
                    optimization,
                    operatorLibraries,
                    metricTags,
                    histogramBuckets,
                    document);
        }
    }
}
