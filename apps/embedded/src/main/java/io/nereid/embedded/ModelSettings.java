// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import io.nereid.base.ServingException;
import io.nereid.repository.ManagedModel;
import io.nereid.spi.config.DynamicBatching;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How one model is served, where its own {@code config.pbtxt} does not say so. Immutable: each method returns a copy.
 *
 * <pre>{@code
 * Nereid.builder().model("iris", file, ModelSettings.DEFAULT.batching(32, Duration.ofMillis(2)).instances(2));
 * }</pre>
 */
public final class ModelSettings {
    /** One instance, no batching, the backend by the files. */
    public static final ModelSettings DEFAULT = new ModelSettings("", Map.of(), 1, null, 0, "");

    private final String backend;
    private final Map<String, String> parameters;
    private final int instances;
    private final @Nullable DynamicBatching batching;
    private final int maxBatchSize;
    private final String config;

    private ModelSettings(
            String backend,
            Map<String, String> parameters,
            int instances,
            @Nullable DynamicBatching batching,
            int maxBatchSize,
            String config) {
        this.backend = backend;
        this.parameters = parameters;
        this.instances = instances;
        this.batching = batching;
        this.maxBatchSize = maxBatchSize;
        this.config = config;
    }

    /** The backend or platform, such as {@code onnxruntime} or {@code xgboost}; by default what recognises the files. */
    public ModelSettings backend(String name) {
        return new ModelSettings(name, parameters, instances, batching, maxBatchSize, config);
    }

    /** A parameter of the backend, as in {@code parameters} of {@code config.pbtxt}. */
    public ModelSettings parameter(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(parameters);
        more.put(name, value);
        return new ModelSettings(backend, Map.copyOf(more), instances, batching, maxBatchSize, config);
    }

    /**
     * How many requests may run at a time; 1 by default.
     *
     * @throws ServingException INVALID_ARGUMENT below 1
     */
    public ModelSettings instances(int count) {
        if (count < 1) {
            throw ServingException.invalidArgument("instances " + count + " (expected: 1 or more)");
        }
        return new ModelSettings(backend, parameters, count, batching, maxBatchSize, config);
    }

    /**
     * Runs requests that wait at the same time as one batch.
     *
     * @param maxBatchSize the most rows of a batch
     * @param delay how long a request may wait for others; zero for no longer than an instance is busy
     * @throws ServingException INVALID_ARGUMENT for fewer than two rows or a negative delay
     */
    public ModelSettings batching(int maxBatchSize, Duration delay) {
        if (maxBatchSize < 2 || delay.isNegative()) {
            throw ServingException.invalidArgument("batches of at most " + maxBatchSize + " rows after "
                    + delay.toMillis() + " ms (expected: 2 or more rows, 0 ms or more)");
        }
        return new ModelSettings(
                backend, parameters, instances, new DynamicBatching(List.of(), delay, false), maxBatchSize, config);
    }

    /** The whole configuration as JSON of Triton's {@code ModelConfig}, instead of a stored one. */
    public ModelSettings config(String json) {
        return new ModelSettings(backend, parameters, instances, batching, maxBatchSize, json);
    }

    ManagedModel managed(String name, Path path) {
        return new ManagedModel(
                name, path, false, backend, "", parameters, instances, batching, maxBatchSize, config, List.of());
    }
}
