// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Models in Java. Which one says the configuration:
 *
 * <ul>
 *   <li>{@code parameters { key: "model" value: { string_value: "identity" } }}: a built-in one: {@code identity} (gives
 *       back what it gets, without a copy), {@code add_sub} (sum and difference of two inputs of any numeric type),
 *       {@code pooling} (the mean of a sentence's token vectors) and those that serve tests, which are also backends of
 *       their own: {@code repeat}, {@code square}, {@code sequence}, {@code dyna_sequence}, {@code implicit_state} and
 *       {@code iterative_sequence};
 *   <li>otherwise the {@link JavaModel} of {@code model.jar} in the version's directory, the one class that the jar offers
 *       as a service or the one that the parameter {@code class} names.
 * </ul>
 *
 * The parameter {@code execute_delay_ms} makes every run take at least so long, for tests. Thread-safe: has no state.
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
    public @Nullable String unavailable() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        String builtIn = config.parameters().getOrDefault("model", "");
        return builtIn.isEmpty()
                ? JarModel.load(source, config, context)
                : BuiltIns.load(builtIn, name(), config, context);
    }
}
