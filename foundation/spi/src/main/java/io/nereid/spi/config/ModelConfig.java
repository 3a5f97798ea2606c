// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import io.nereid.tensor.Shape;
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
 *         .batching(DynamicBatching.EAGER)
 *         .instances(2)
 *         .build();
 * }</pre>
 *
 * @param name the model's name
 * @param platform {@code onnxruntime_onnx}, …, or empty
 * @param backend the backend's name, or empty
 * @param modelFile the file (or directory) inside a version's directory; empty for the backend's default
 * @param capabilityFiles files that take the place of {@code modelFile} on a GPU, by its compute capability, such as
 *     {@code 8.0}
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
        Map<String, String> capabilityFiles,
        int maxBatchSize,
        List<TensorSpec> inputs,
        List<TensorSpec> outputs,
        List<BatchInput> batchInputs,
        List<BatchOutput> batchOutputs,
        VersionPolicy versionPolicy,
        @Nullable DynamicBatching batching,
        @Nullable SequenceBatching sequence,
        @Nullable EnsembleScheduling ensemble,
        QueuePolicy queue,
        List<InstanceGroup> instanceGroups,
        boolean decoupled,
        boolean responseCache,
        Map<String, String> parameters,
        Map<String, List<String>> labels,
        List<WarmupSample> warmups,
        OptimizationPolicy optimization,
        List<String> operatorLibraries,
        Map<String, String> metricTags,
        Map<String, List<Double>> histogramBuckets,
        Map<String, Object> document) {
    /** A configuration with one file for all GPUs. */
    public ModelConfig(
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
            @Nullable DynamicBatching batching,
            @Nullable SequenceBatching sequence,
            @Nullable EnsembleScheduling ensemble,
            QueuePolicy queue,
            List<InstanceGroup> instanceGroups,
            boolean decoupled,
            boolean responseCache,
            Map<String, String> parameters,
            Map<String, List<String>> labels,
            List<WarmupSample> warmups,
            OptimizationPolicy optimization,
            List<String> operatorLibraries,
            Map<String, String> metricTags,
            Map<String, List<Double>> histogramBuckets,
            Map<String, Object> document) {
        this(
                name,
                platform,
                backend,
                modelFile,
                Map.of(),
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
            @Nullable DynamicBatching newBatching,
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
     * The effective batch padding and splitting settings. They are {@link BatchSizePolicy#NONE} without dynamic batching and for
     * sequences, whose rows cannot be copied or moved. Requests of decoupled models are never split.
     */
    public BatchSizePolicy batchSizePolicy() {
        if (batching == null || sequence != null) {
            return BatchSizePolicy.NONE;
        }
        BatchSizePolicy policy = batching.batchSizePolicy();
        return decoupled && policy.maxRequestRows() > 0
                ? new BatchSizePolicy(policy.allowedSizes(), policy.padVariableLength(), 0, policy.maxEnqueuedBatches())
                : policy;
    }

    /** The number of runs that may execute at once; 0 when not set. Passive instances are not counted. */
    public int instances() {
        long sum = 0;
        for (InstanceGroup group : instanceGroups) {
            sum += group.passive() ? 0 : group.instances();
        }
        return (int) Math.min(Integer.MAX_VALUE, sum);
    }

    /**
     * All inputs of a run with the shapes that the model sees, without the batch dimension: inputs, batch inputs,
     * controls and states of sequences. A ragged input is one flat tensor, whose only dimension takes the place of the
     * batch dimension.
     */
    public List<TensorSpec> modelInputs() {
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
            for (SequenceControl c : sequence.controls()) {
                feeds.add(new TensorSpec(c.name(), c.dataType(), Shape.of(1)));
            }
            for (SequenceStateConfig s : sequence.states()) {
                feeds.add(new TensorSpec(s.inputName(), s.dataType(), s.shape()));
            }
        }
        return List.copyOf(feeds);
    }

    /** All outputs of a run with the shapes that the model sees, without the batch dimension. */
    public List<TensorSpec> modelOutputs() {
        boolean states = sequence != null && !sequence.states().isEmpty();
        if (!states && outputs.stream().allMatch(ModelConfig::plain)) {
            return outputs;
        }
        List<TensorSpec> fetches = new ArrayList<>();
        for (TensorSpec s : outputs) {
            fetches.add(new TensorSpec(s.name(), s.dataType(), s.modelShape()));
        }
        if (sequence != null) {
            for (SequenceStateConfig s : sequence.states()) {
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
     * Builds a configuration. Every setter replaces the previous value and returns the builder. Confined to one
     * thread.
     */
    public static final class Builder {
        private final String name;
        private String platform = "";
        private String backend = "";
        private String modelFile = "";
        private Map<String, String> capabilityFiles = Map.of();
        private int maxBatchSize = -1;
        private List<TensorSpec> inputs = List.of();
        private List<TensorSpec> outputs = List.of();
        private List<BatchInput> batchInputs = List.of();
        private List<BatchOutput> batchOutputs = List.of();
        private VersionPolicy versionPolicy = VersionPolicy.LATEST;
        private @Nullable DynamicBatching batching;
        private @Nullable SequenceBatching sequence;
        private @Nullable EnsembleScheduling ensemble;
        private QueuePolicy queue = QueuePolicy.DEFAULT;
        private List<InstanceGroup> instanceGroups = List.of();
        private boolean decoupled;
        private boolean responseCache;
        private Map<String, String> parameters = Map.of();
        private Map<String, List<String>> labels = Map.of();
        private List<WarmupSample> warmups = List.of();
        private OptimizationPolicy optimization = OptimizationPolicy.DEFAULT;
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
            capabilityFiles = c.capabilityFiles;
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

        /** See {@link ModelConfig#capabilityFiles}. */
        public Builder capabilityFiles(Map<String, String> value) {
            this.capabilityFiles = value;
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
        public Builder batching(@Nullable DynamicBatching value) {
            this.batching = value;
            return this;
        }

        /** See {@link ModelConfig#sequence}. */
        public Builder sequence(@Nullable SequenceBatching value) {
            this.sequence = value;
            return this;
        }

        /** See {@link ModelConfig#ensemble}. */
        public Builder ensemble(@Nullable EnsembleScheduling value) {
            this.ensemble = value;
            return this;
        }

        /** See {@link ModelConfig#queue}. */
        public Builder queue(QueuePolicy value) {
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
        public Builder warmups(List<WarmupSample> value) {
            this.warmups = value;
            return this;
        }

        /** See {@link ModelConfig#optimization}. */
        public Builder optimization(OptimizationPolicy value) {
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
                    capabilityFiles,
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
