// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.linear;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Serves linear models, {@code y = x·w + b}, from the text format of {@link Weights}. The input {@code x} has one
 * number for each weight, the output {@code y} has one number. Thread-safe: has no state.
 */
public final class LinearBackend implements Backend {
    static final String NAME = "linear";
    private static final String FILE = "model.linear";
    private static final int DEFAULT_BATCH = 32;

    /** For {@link java.util.ServiceLoader}. */
    public LinearBackend() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(NAME);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(FILE);
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
        String name = config.modelFile().isEmpty() ? FILE : config.modelFile();
        Path directory = location.versionDirectory().normalize();
        Path file = directory.resolve(name).normalize();
        if (!file.startsWith(directory)) {
            throw ServingException.invalidArgument(
                    "model file '" + name + "' is outside the version directory", "name a file inside " + directory);
        }
        Weights weights = Weights.read(file);
        return new LinearModel(weights, complete(config, weights.size(), context));
    }

    /** Fills in what the configuration leaves open, and rejects what contradicts the model. */
    private static ModelConfig complete(ModelConfig config, int features, BackendContext context) {
        int rows = config.maxBatchSize() >= 0 ? config.maxBatchSize() : context.autoComplete() ? DEFAULT_BATCH : 0;
        boolean batched = rows > 0;
        TensorSpec x = new TensorSpec("x", DataType.FP32, batched ? Shape.of(features) : Shape.of(-1, features));
        TensorSpec y = new TensorSpec("y", DataType.FP32, batched ? Shape.of(1) : Shape.of(-1, 1));
        check(config, "input", config.inputs(), x);
        check(config, "output", config.outputs(), y);
        boolean addBatcher = config.maxBatchSize() < 0 && batched && config.batching() == null;
        return config.completed(
                NAME,
                NAME,
                rows,
                List.of(x),
                List.of(y),
                addBatcher ? DynamicBatching.EAGER : config.batching(),
                config.instances() > 0 ? config.instances() : Math.max(1, context.cores()));
    }

    private static void check(ModelConfig config, String kind, List<TensorSpec> given, TensorSpec expected) {
        if (!given.isEmpty() && !given.equals(List.of(expected))) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' has " + kind + " " + given + " (expected: " + expected + ")",
                    "correct config.pbtxt, or leave the " + kind + " out");
        }
    }
}
