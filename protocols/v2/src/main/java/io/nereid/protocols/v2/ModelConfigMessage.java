// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.protocols.v2.proto.ModelConfiguration;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.ModelConfig.Queue;
import io.nereid.spi.ModelConfig.VersionPolicy;
import io.nereid.spi.ModelConfig.Warmup;
import io.nereid.spi.ModelConfig.WarmupInput;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.Map;

/** Says a model's configuration in the words of the wire. Immutable. */
final class ModelConfigMessage {
    private ModelConfigMessage() {}

    /** The completed document where there is one, else what the record says. */
    static ModelConfiguration.ModelConfig of(ModelConfig config) {
        if (!config.document().isEmpty()) {
            ModelConfiguration.ModelConfig.Builder b = ModelConfiguration.ModelConfig.newBuilder();
            DocumentMessage.fill(b, config.document());
            return b.build();
        }
        return ofRecord(config);
    }

    private static ModelConfiguration.ModelConfig ofRecord(ModelConfig config) {
        ModelConfiguration.ModelConfig.Builder b = ModelConfiguration.ModelConfig.newBuilder()
                .setName(config.name())
                .setPlatform(config.platform())
                .setBackend(config.backend())
                .setDefaultModelFilename(config.modelFile())
                .setMaxBatchSize(Math.max(0, config.maxBatchSize()))
                .setVersionPolicy(policy(config.versionPolicy()))
                .setModelTransactionPolicy(ModelConfiguration.ModelTransactionPolicy.newBuilder());
        for (TensorSpec input : config.inputs()) {
            b.addInput(ModelConfiguration.ModelInput.newBuilder()
                    .setName(input.name())
                    .setDataType(type(input.dataType()))
                    .addAllDims(dims(input.shape()))
                    .setOptional(input.optional()));
        }
        for (TensorSpec output : config.outputs()) {
            b.addOutput(ModelConfiguration.ModelOutput.newBuilder()
                    .setName(output.name())
                    .setDataType(type(output.dataType()))
                    .addAllDims(dims(output.shape())));
        }
        b.addInstanceGroup(ModelConfiguration.ModelInstanceGroup.newBuilder()
                .setName(config.name())
                .setCount(Math.max(1, config.instances()))
                .setKind(ModelConfiguration.ModelInstanceGroup.Kind.KIND_CPU));
        Batching batching = config.batching();
        if (batching != null) {
            b.setDynamicBatching(batching(batching, config.queue(), config.maxBatchSize()));
        }
        config.parameters()
                .forEach((key, value) -> b.putParameters(
                        key,
                        ModelConfiguration.ModelParameter.newBuilder()
                                .setStringValue(value)
                                .build()));
        for (Warmup warmup : config.warmups()) {
            b.addModelWarmup(warmup(warmup));
        }
        return b.build();
    }

    private static ModelConfiguration.ModelVersionPolicy policy(VersionPolicy policy) {
        ModelConfiguration.ModelVersionPolicy.Builder b = ModelConfiguration.ModelVersionPolicy.newBuilder();
        switch (policy.kind()) {
            case LATEST -> b.getLatestBuilder().setNumVersions(policy.count());
            case ALL -> b.getAllBuilder();
            case SPECIFIC -> b.getSpecificBuilder().addAllVersions(policy.versions());
        }
        return b.build();
    }

    private static ModelConfiguration.ModelDynamicBatching batching(Batching batching, Queue queue, int maxBatchSize) {
        ModelConfiguration.ModelDynamicBatching.Builder b = ModelConfiguration.ModelDynamicBatching.newBuilder()
                .addAllPreferredBatchSize(batching.preferredSizes())
                .setMaxQueueDelayMicroseconds(batching.maxQueueDelay().toNanos() / 1_000)
                .setPreserveOrdering(batching.preserveOrdering());
        if (batching.preferredSizes().isEmpty() && maxBatchSize > 0) {
            b.addPreferredBatchSize(maxBatchSize);
        }
        if (!queue.equals(Queue.DEFAULT)) {
            b.setDefaultQueuePolicy(ModelConfiguration.ModelQueuePolicy.newBuilder()
                    .setMaxQueueSize(queue.maxSize())
                    .setDefaultTimeoutMicroseconds(queue.defaultTimeout().toNanos() / 1_000)
                    .setAllowTimeoutOverride(queue.allowTimeoutOverride()));
        }
        return b.build();
    }

    private static ModelConfiguration.ModelWarmup warmup(Warmup warmup) {
        ModelConfiguration.ModelWarmup.Builder b = ModelConfiguration.ModelWarmup.newBuilder()
                .setName(warmup.name())
                .setBatchSize(warmup.batchSize())
                .setCount(warmup.count());
        for (Map.Entry<String, WarmupInput> entry : warmup.inputs().entrySet()) {
            WarmupInput input = entry.getValue();
            ModelConfiguration.ModelWarmup.Input.Builder i = ModelConfiguration.ModelWarmup.Input.newBuilder()
                    .setDataType(type(input.dataType()))
                    .addAllDims(dims(input.shape()));
            switch (input.data()) {
                case ZERO -> i.setZeroData(true);
                case RANDOM -> i.setRandomData(true);
                case FILE -> i.setInputDataFile(input.file());
            }
            b.putInputs(entry.getKey(), i.build());
        }
        return b.build();
    }

    private static Iterable<Long> dims(Shape shape) {
        return java.util.Arrays.stream(shape.dims()).boxed().toList();
    }

    private static ModelConfiguration.DataType type(DataType type) {
        return type == DataType.BYTES
                ? ModelConfiguration.DataType.TYPE_STRING
                : ModelConfiguration.DataType.valueOf("TYPE_" + type.name());
    }
}
