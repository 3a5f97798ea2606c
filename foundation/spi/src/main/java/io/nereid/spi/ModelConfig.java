// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The one internal record of a model's configuration; every dialect is a reader of it. Immutable. Empty lists and empty
 * texts mean "not given": the backend and the defaults fill them in.
 *
 * @param name the model's name
 * @param platform {@code onnxruntime_onnx}, …, or empty
 * @param backend the backend's name, or empty
 * @param modelFile the file (or directory) inside a version's directory, or empty for the backend's default
 * @param maxBatchSize -1 when not given; 0 when the model has no batch dimension; else {@code input} and {@code output}
 *     shapes exclude the batch dimension
 * @param inputs expected inputs
 * @param outputs produced outputs
 * @param versionPolicy which stored versions are wanted
 * @param batching how requests are joined; null when they are run one by one
 * @param queue limits of the queue, whether or not there is batching
 * @param instances how many runs may go on at once; 0 when not given
 * @param parameters free-form, read by the backend
 * @param labels label texts by output name, for classification
 * @param warmups requests to run before the model counts as available
 */
public record ModelConfig(
        String name,
        String platform,
        String backend,
        String modelFile,
        int maxBatchSize,
        List<TensorSpec> inputs,
        List<TensorSpec> outputs,
        VersionPolicy versionPolicy,
        @Nullable Batching batching,
        Queue queue,
        int instances,
        Map<String, String> parameters,
        Map<String, List<String>> labels,
        List<Warmup> warmups) {
    /** The configuration of a model about which nothing was said but its name. */
    public static ModelConfig unspecified(String name) {
        return new ModelConfig(
                name,
                "",
                "",
                "",
                -1,
                List.of(),
                List.of(),
                VersionPolicy.LATEST,
                null,
                Queue.DEFAULT,
                0,
                Map.of(),
                Map.of(),
                List.of());
    }

    /** This configuration with the parts that a backend may fill in. */
    public ModelConfig completed(
            String newPlatform,
            String newBackend,
            int newMaxBatchSize,
            List<TensorSpec> newInputs,
            List<TensorSpec> newOutputs,
            @Nullable Batching newBatching,
            int newInstances) {
        return new ModelConfig(
                name,
                newPlatform,
                newBackend,
                modelFile,
                newMaxBatchSize,
                newInputs,
                newOutputs,
                versionPolicy,
                newBatching,
                queue,
                newInstances,
                parameters,
                labels,
                warmups);
    }

    /** Whether the first dimension of every tensor is the batch dimension. */
    public boolean batched() {
        return maxBatchSize > 0;
    }

    /**
     * Which stored versions are wanted.
     *
     * @param kind the rule
     * @param count how many, for {@link Kind#LATEST}
     * @param versions which, for {@link Kind#SPECIFIC}
     */
    public record VersionPolicy(Kind kind, int count, List<Long> versions) {
        /** The highest version only. */
        public static final VersionPolicy LATEST = new VersionPolicy(Kind.LATEST, 1, List.of());

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
     */
    public record Batching(List<Integer> preferredSizes, Duration maxQueueDelay, boolean preserveOrdering) {
        /** Batches whatever is waiting, waits for nothing. */
        public static final Batching EAGER = new Batching(List.of(), Duration.ZERO, false);
    }

    /**
     * Limits of a queue.
     *
     * @param maxSize most requests that may wait; 0 for no limit
     * @param defaultTimeout longest wait of a request that names no timeout; zero for none
     * @param allowTimeoutOverride whether a request may name its own
     */
    public record Queue(int maxSize, Duration defaultTimeout, boolean allowTimeoutOverride) {
        /** No limits of its own: the server-wide ones hold. */
        public static final Queue DEFAULT = new Queue(0, Duration.ZERO, true);
    }

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
}
