// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The backend for models that are written in Java. The configuration selects the model:
 *
 * <ul>
 *   <li>{@code parameters { key: "model" value { string_value: "pooling" } }}: the built-in model, which computes the
 *       mean of the token vectors of a sentence;
 *   <li>otherwise the {@link JavaModel} in {@code model.jar} of the version directory: the only class that the jar
 *       provides as a service, or the class in the parameter {@code class}.
 * </ul>
 *
 * The parameter {@code execute_delay_ms} delays every run, for tests. Thread-safe: has no state.
 */
public final class JavaBackend implements Backend {
    static final String JAR = "model.jar";

    /** For {@link java.util.ServiceLoader}. */
    public JavaBackend() {}

    @Override
    public String name() {
        return "java";
    }

    @Override
    public List<String> platforms() {
        return List.of("java");
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(JAR);
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        String builtIn = config.parameters().getOrDefault("model", "");
        return switch (builtIn) {
            case "" -> JarModelLoader.load(source, config, context);
            case PoolingBackend.NAME, "mean_pool" -> PoolingBackend.load(name(), config, context);
            default ->
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' names an unknown built-in model '" + builtIn + "' (expected: "
                                + PoolingBackend.NAME + ")",
                        "correct the parameter 'model', or set 'backend' to the backend that has this model");
        };
    }
}
