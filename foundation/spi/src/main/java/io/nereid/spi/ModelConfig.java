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
 * The configuration of a model: the server's internal form of Triton's {@code ModelConfig}. Every configuration format
 * ({@code config.pbtxt}, JSON, TensorFlow Serving's files) is converted to this record. Immutable. Empty lists and
 * empty strings mean "not set": the backend or the defaults fill them in. Created by {@link #builder} or
 * {@link #toBuilder}.
 *
 * <pre>{@code
 * ModelConfig config = ModelConfig.builder("iris")
 *         .backend("onnxruntime")
 *         .maxBatchSize(8)
 *         .inputs(List.of(new TensorSpec("INPUT0", DataType.FP32, Shape.of(4))))     // without the batch dimension
 *         .outputs(List.of(new TensorSpec("OUTPUT0", DataType.FP32, Shape.of(3))))
 *         .batching(ModelConfig.Batching.EAGER)
 *         .instances(2)
 *         .build();
 * }</pre>
 *
 * @param name the model's name
 * @param platform {@code onnxruntime_onnx}, …, or empty
 * @param backend the backend's name, or empty
 * @param modelFile the file (or directory) inside a version's directory; empty for the backend's default
 * @param maxBatchSize -1 when not set; 0 when the model has no batch dimension; otherwise the largest batch in rows,
 *     and the shapes of {@code inputs} and {@code outputs} exclude the batch dimension
 * @param inputs the tensors that clients send
 * @param outputs the tensors that clients receive
 * @param batchInputs tensors that the server creates for each batch
 * @param batchOutputs outputs that the server splits by the shape of an input
 * @param versionPolicy which of the stored versions are served
 * @param batching settings of the dynamic batcher; null when requests run one by one
 * @param sequence settings of the sequence batcher; null for independent requests
 * @param ensemble the steps of an ensemble; null for other models
 * @param queue limits of the queue, with or without batching
 * @param instanceGroups how many runs may execute at once, and where; empty when not set
 * @param decoupled whether a request may have any number of responses
 * @param responseCache whether responses are cached for equal requests
 * @param parameters free-form parameters, which the backend interprets
 * @param labels class labels by output name, for classification
 * @param warmups requests that run before the model becomes available
 * @param optimization performance settings for the backend
 * @param operatorLibraries files of the model's directory with custom operators
 * @param metricTags labels that are added to the model's metrics
 * @param histogramBuckets upper bounds of the model's histograms by metric family, ascending
 * @param document the whole configuration with the field names of Triton's {@code ModelConfig}: Map, List, String,
 *     Long, Double and Boolean by field name, enumerations by name, defaults included; empty until the configuration
 *     is complete
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
    /** A configuration in which only the name is set. */
    public static ModelConfig unspecified(String name) {
        return builder(name).build();
    }

    /** Creates a builder for a configuration in which only the name is set. */
    public static Builder builder(String name) {
        return new Builder(name);
    }

    /** Creates a builder that starts with the values of this configuration. */
    public Builder toBuilder() {
        return new Builder(this);
    }

    /**
     * Returns this configuration with the values that a backend may fill in.
     *
     * @param newInstances the number of instances; 0 leaves the instance groups unchanged
     */
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
     * The effective batch padding and splitting settings. They are {@link Fit#NONE} without dynamic batching and for
     * sequences, whose rows cannot be copied or moved. Requests of decoupled models are never split.
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

    /** The number of runs that may execute at once; 0 when not set. Passive instances are not counted. */
    public int instances() {
        long sum = 0;
        for (InstanceGroup group : instanceGroups) {
            sum += group.passive() ? 0 : group.count();
        }
        return (int) Math.min(Integer.MAX_VALUE, sum);
    }

    /**
     * All inputs of a run with the shapes that the model sees, without the batch dimension: inputs, batch inputs,
     * controls and states of sequences. A ragged input is one flat tensor, whose only dimension takes the place of the
     * batch dimension.
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

    /** All outputs of a run with the shapes that the model sees, without the batch dimension. */
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
     * Which of the stored versions are served. Immutable.
     *
     * @param kind the rule
     * @param count the number of versions, for {@link Kind#LATEST}
     * @param versions the version numbers, for {@link Kind#SPECIFIC}
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
     * Settings of the dynamic batcher. Immutable.
     *
     * @param preferredSizes batch sizes to aim for, ascending; empty for the maximum only
     * @param maxQueueDelay how long a request may wait for further requests to fill the batch
     * @param preserveOrdering whether responses are sent in the order of the requests
     * @param priorityLevels number of priority levels, where 1 is served first; 0 for one queue without levels
     * @param defaultPriority the level of a request that has none, or one that does not exist
     * @param levelQueues limits of single levels; the other levels use {@link ModelConfig#queue}
     * @param fit padding and splitting of batches
     */
    public record Batching(
            List<Integer> preferredSizes,
            Duration maxQueueDelay,
            boolean preserveOrdering,
            long priorityLevels,
            long defaultPriority,
            Map<Long, Queue> levelQueues,
            Fit fit) {
        /** Batches the requests that are waiting, without any delay. */
        public static final Batching EAGER = new Batching(List.of(), Duration.ZERO, false);

        /** Settings without priority levels. */
        public Batching(List<Integer> preferredSizes, Duration maxQueueDelay, boolean preserveOrdering) {
            this(preferredSizes, maxQueueDelay, preserveOrdering, 0, 0, Map.of());
        }

        /** Settings without padding and splitting. */
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

        /** Returns these settings with other padding and splitting. */
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
     * Padding and splitting of batches, as in TensorFlow Serving's batching parameters. Immutable.
     *
     * @param allowedSizes the only batch sizes with which the model runs, ascending; smaller batches are padded with
     *     copies of a row, whose results are discarded; empty for any size
     * @param padVariableLength whether inputs of different shapes are padded to the largest shape in the batch, each
     *     with its own first element
     * @param maxRequestRows the most rows of one request, which is split into several runs when it exceeds
     *     {@code maxBatchSize}; 0 when requests are never split
     * @param maxEnqueuedBatches the most batches that may wait; 0 for no limit
     */
    public record Fit(
            List<Integer> allowedSizes, boolean padVariableLength, int maxRequestRows, int maxEnqueuedBatches) {
        /** Neither padding nor splitting. */
        public static final Fit NONE = new Fit(List.of(), false, 0, 0);
    }

    /**
     * Limits of a queue. Immutable.
     *
     * @param maxSize the most requests that may wait; 0 for no limit
     * @param defaultTimeout the longest wait of a request that sets no timeout; zero for no limit
     * @param allowTimeoutOverride whether a request may set its own timeout
     * @param onTimeout what happens to a request that has exceeded its timeout
     */
    public record Queue(int maxSize, Duration defaultTimeout, boolean allowTimeoutOverride, TimeoutAction onTimeout) {
        /** No limits in this model: the server-wide limits apply. */
        public static final Queue DEFAULT = new Queue(0, Duration.ZERO, true);

        /** Limits that reject requests after their timeout. */
        public Queue(int maxSize, Duration defaultTimeout, boolean allowTimeoutOverride) {
            this(maxSize, defaultTimeout, allowTimeoutOverride, TimeoutAction.REJECT);
        }

        /** What happens to a request that has exceeded its timeout. */
        public enum TimeoutAction {
            /** The request fails. */
            REJECT,
            /** The request is served after all requests that have not exceeded their timeouts. */
            DELAY
        }
    }

    /**
     * Settings of the sequence batcher. Immutable.
     *
     * @param strategy how sequences share the instances
     * @param maxIdle how long a sequence may be idle before it ends
     * @param controls control tensors, which show the model the position of a request in its sequence
     * @param states implicit state tensors, which the server carries from one request of a sequence to the next
     * @param iterative whether the model may reschedule a request
     */
    public record Sequence(
            Strategy strategy, Duration maxIdle, List<Control> controls, List<State> states, boolean iterative) {
        /** How sequences share the instances. */
        public sealed interface Strategy {}

        /**
         * Direct strategy: every sequence occupies a slot (a row of the batch) of one instance. Immutable.
         *
         * @param maxQueueDelay how long a batch may wait for more of its slots to have a request
         * @param minimumSlotUtilization fraction of the slots, 0 to 1, from which on a batch runs without waiting
         */
        public record Direct(Duration maxQueueDelay, double minimumSlotUtilization) implements Strategy {}

        /**
         * Oldest strategy: every sequence is bound to one instance, which batches requests of different sequences,
         * oldest first. Immutable.
         *
         * @param maxCandidates the most sequences of one instance at once; 0 for as many as the batch has rows
         * @param preferredSizes as in {@link Batching}
         * @param maxQueueDelay as in {@link Batching}
         * @param preserveOrdering as in {@link Batching}
         */
        public record Oldest(
                int maxCandidates, List<Integer> preferredSizes, Duration maxQueueDelay, boolean preserveOrdering)
                implements Strategy {}
    }

    /**
     * A control tensor of the sequence batcher: one element for each row. Immutable.
     *
     * @param name the model's input
     * @param kind the meaning of the control
     * @param dataType INT32, FP32 or BOOL; for the correlation id also UINT64, INT64, UINT32 or BYTES
     * @param no the value for false; unused for the correlation id
     * @param yes the value for true; unused for the correlation id
     */
    public record Control(String name, Control.Kind kind, DataType dataType, double no, double yes) {
        /** The meaning of a control. */
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
     * An implicit state: a tensor that the server carries from one request of a sequence to the next. Immutable.
     *
     * @param inputName the model's input that receives the state
     * @param outputName the model's output that returns the new state
     * @param dataType the type of its elements
     * @param shape without the batch dimension; -1 for any size
     * @param initial the state for the first request of a sequence; null for zeros, or empty strings
     * @param sameBuffer whether input and output share one buffer
     */
    public record State(
            String inputName,
            String outputName,
            DataType dataType,
            Shape shape,
            @Nullable InitialState initial,
            boolean sameBuffer) {}

    /**
     * The state for the first request of a sequence. Immutable.
     *
     * @param name a name for error messages
     * @param shape concrete, without -1
     * @param file a file in the directory {@code initial_state} of the model, with the bytes of one row; empty for
     *     zeros
     */
    public record InitialState(String name, Shape shape, String file) {}

    /**
     * The steps of an ensemble. Immutable.
     *
     * @param steps in the order of the configuration; the order of execution follows from the tensors
     * @param maxInflight the most requests of one step in flight for one request of the ensemble; 0 for no limit
     */
    public record Ensemble(List<Step> steps, int maxInflight) {}

    /**
     * One step of an ensemble. Immutable.
     *
     * @param model the composing model
     * @param version its version, or -1 for the latest
     * @param inputs ensemble tensors by the model's input
     * @param outputs ensemble tensors by the model's output
     * @param when the name of a boolean ensemble tensor, or empty; the step is skipped when the tensor is absent or
     *     contains a false element
     */
    public record Step(
            String model, long version, Map<String, String> inputs, Map<String, String> outputs, String when) {}

    /**
     * A group of instances of one kind. Immutable.
     *
     * @param name the instances are named {@code <name>_<i>}
     * @param kind where they run
     * @param count how many, at least 1
     * @param gpus the devices, for {@link Kind#GPU}
     * @param passive whether the instances are loaded but receive no requests
     * @param hostPolicy the name of a server-wide host policy; empty for none
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
        /** A group of CPU instances with default settings. */
        public static InstanceGroup cpu(String name, int count) {
            return new InstanceGroup(name, InstanceGroup.Kind.CPU, count, List.of(), false, "", List.of(), 0);
        }

        /** Where instances run. */
        public enum Kind {
            /** On a GPU if the machine has one that the backend can use, else on CPUs. */
            AUTO,
            /** On GPUs. */
            GPU,
            /** On CPUs. */
            CPU,
            /** On the device that the model itself selects. */
            MODEL
        }

        /**
         * A resource that runs take from the rate limiter and return. Immutable.
         *
         * @param name the resource's name
         * @param global whether all devices share it
         * @param count how many units a run takes
         */
        public record Resource(String name, boolean global, int count) {}
    }

    /**
     * A tensor that the server creates for each batch. Immutable.
     *
     * @param kind the content of the tensor
     * @param targets the model's inputs that receive it
     * @param dataType INT32 or FP32
     * @param source the input that the tensor describes
     */
    public record BatchInput(BatchInput.Kind kind, List<String> targets, DataType dataType, String source) {
        /** The content of a batch input; {@code n} is the number of requests in the batch. */
        public enum Kind {
            /** The number of elements of the source in each request: shape {@code [n]}. */
            ELEMENT_COUNT,
            /** The running sum of the element counts: shape {@code [n]}. */
            ACCUMULATED_ELEMENT_COUNT,
            /** The running sum of the element counts, with a leading 0: shape {@code [n + 1]}. */
            ACCUMULATED_ELEMENT_COUNT_WITH_ZERO,
            /** A tensor of unspecified content whose shape is {@code [greatest count]}. */
            MAX_ELEMENT_COUNT_AS_SHAPE,
            /** The source's shape without the batch dimension for each row: shape {@code [rows, rank]}. */
            ITEM_SHAPE,
            /** The same as ITEM_SHAPE in one dimension: shape {@code [rows * rank]}. */
            ITEM_SHAPE_FLATTEN
        }

        /** The dimensions that the model sees, without the first one. */
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
     * Flat outputs that the server splits by the shape of each request's input. Immutable.
     *
     * @param targets the outputs
     * @param source the input
     */
    public record BatchOutput(List<String> targets, String source) {}

    /**
     * Performance settings for the backend. Immutable.
     *
     * @param graphLevel the graph optimization level, which the backend interprets; 0 for its default
     * @param cpuAccelerators accelerators for CPUs, in order of preference
     * @param gpuAccelerators accelerators for GPUs, in order of preference
     */
    public record Optimization(int graphLevel, List<Accelerator> cpuAccelerators, List<Accelerator> gpuAccelerators) {
        /** The backend's defaults. */
        public static final Optimization DEFAULT = new Optimization(0, List.of(), List.of());
    }

    /**
     * An execution accelerator. Immutable.
     *
     * @param name {@code openvino}, {@code tensorrt}, …
     * @param parameters parameters, which the accelerator interprets
     */
    public record Accelerator(String name, Map<String, String> parameters) {}

    /**
     * A warm-up sample: requests that run before a version becomes available. Immutable.
     *
     * @param name a name for log messages
     * @param batchSize rows per request; 0 disables the sample
     * @param count how often it runs
     * @param inputs by input name
     */
    public record Warmup(String name, int batchSize, int count, Map<String, WarmupInput> inputs) {}

    /**
     * One input of a warm-up request. Immutable.
     *
     * @param dataType the type of its elements
     * @param shape without the batch dimension
     * @param data the source of the bytes
     * @param file the file under {@code <model>/warmup}, for {@link Data#FILE}; else empty
     */
    public record WarmupInput(DataType dataType, Shape shape, Data data, String file) {
        /** The source of the bytes. */
        public enum Data {
            /** Zeros. */
            ZERO,
            /** Random values from a fixed seed. */
            RANDOM,
            /** A file with the raw bytes of one row. */
            FILE
        }
    }

    /**
     * Builds a configuration. Every setter replaces the previous value and returns the builder. Confined to one
     * thread.
     */
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

        /** Sets one group of {@code count} CPU instances, named after the model. */
        public Builder instances(int count) {
            return instanceGroups(List.of(InstanceGroup.cpu(name, count)));
        }

        /** Creates the configuration. */
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
