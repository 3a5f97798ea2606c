// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelSource;
import io.nereid.base.ServingException;
import io.nereid.base.Suggestions;
import io.nereid.spi.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Models in Java. Which one says the configuration:
 *
 * <ul>
 *   <li>{@code parameters { key: "model" value: { string_value: "identity" } }}: a built-in one, {@code identity} (gives
 *       back what it gets, without a copy) or {@code add_sub} (sum and difference of two inputs of any numeric type);
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
    public BackendModel load(ModelSource source, ModelConfig config, BackendContext context) {
        String builtIn = config.parameters().getOrDefault("model", "");
        return switch (builtIn) {
            case "" -> JarModel.load(source, config, context);
            case "identity" -> loadIdentity(config, "java", name());
            case "add_sub" -> load(new AddSubModel(AddSubModel.complete(config)), "java", name());
            default ->
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' asks for the built-in Java model '" + builtIn
                                + "' (expected: identity or add_sub)",
                        builtIn.length() > 64
                                ? null
                                : Suggestions.didYouMean(
                                        builtIn, List.of("identity", "add_sub"), "correct the parameter 'model'"));
        };
    }

    static BackendModel loadIdentity(ModelConfig config, String platform, String backend) {
        return load(new IdentityModel(IdentityModel.complete(config)), platform, backend);
    }

    private static BackendModel load(BuiltInModel model, String platform, String backend) {
        return new LoadedJavaModel(model.config(), platform, backend, model, model.inline(), () -> {});
    }
}
