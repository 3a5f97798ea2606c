// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.plugin.PluginApi;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/**
 * A custom batching strategy from the model's own jar, as Triton's custom batching libraries, in a class loader that
 * is closed with it. Thread rule: that of the strategy in the jar.
 */
public final class CustomBatchStrategy implements BatchStrategy {
    /** The name of the jar in the version's or the model's directory. */
    public static final String FILE = "batchstrategy.jar";

    /** The model parameter with the path of the jar. */
    public static final String PARAMETER = "TRITON_BATCH_STRATEGY_PATH";

    private final BatchStrategy strategy;
    private final URLClassLoader classes;

    private CustomBatchStrategy(BatchStrategy strategy, URLClassLoader classes) {
        this.strategy = strategy;
        this.classes = classes;
    }

    /**
     * Returns the strategy of a model with dynamic batching; null when it has none.
     *
     * @throws ServingException INVALID_ARGUMENT when the named jar does not exist, has no provider, or its provider
     *     fails, FAILED_PRECONDITION when it was built for another version of the API
     */
    static @Nullable BatchStrategy find(ModelLocation source, ModelConfig config) {
        String named = config.parameters().get(PARAMETER);
        Path jar = null;
        if (named != null && !named.isEmpty()) {
            jar = source.modelDirectory().resolve(named);
            if (!Files.isRegularFile(jar)) {
                throw ServingException.invalidArgument(
                        "parameter " + PARAMETER + " of model '" + config.name() + "' names " + jar
                                + ", which does not exist",
                        "give the path of a jar, absolute or relative to the model's directory");
            }
        } else {
            for (Path directory : List.of(source.versionDirectory(), source.modelDirectory())) {
                if (jar == null && Files.isRegularFile(directory.resolve(FILE))) {
                    jar = directory.resolve(FILE);
                }
            }
        }
        if (jar == null) {
            return null;
        }
        if (config.batching() == null) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' has a batching strategy, " + jar + ", but no dynamic_batching",
                    "add dynamic_batching to its configuration, or remove the jar");
        }
        return open(jar, config);
    }

    private static BatchStrategy open(Path jar, ModelConfig config) {
        PluginApi.check(jar);
        URLClassLoader classes;
        try {
            classes = new URLClassLoader(
                    "batchstrategy-" + config.name(),
                    new URL[] {jar.toUri().toURL()},
                    BatchStrategy.class.getClassLoader());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        try {
            List<BatchStrategy.Provider> providers = StreamSupport.stream(
                            ServiceLoader.load(BatchStrategy.Provider.class, classes)
                                    .spliterator(),
                            false)
                    .filter(p -> p.getClass().getClassLoader() == classes)
                    .toList();
            if (providers.size() != 1) {
                throw ServingException.invalidArgument(
                        "batching strategy " + jar + " of model '" + config.name() + "' has " + providers.size()
                                + " providers (expected: 1)",
                        "name one in META-INF/services/" + BatchStrategy.Provider.class.getName());
            }
            return new CustomBatchStrategy(providers.get(0).open(config), classes);
        } catch (ServiceConfigurationError | LinkageError | RuntimeException e) {
            end(classes);
            if (e instanceof ServingException s) {
                throw s;
            }
            ServingException mismatch =
                    PluginApi.mismatch("batching strategy " + jar + " of model '" + config.name() + "'", e);
            throw mismatch != null
                    ? mismatch
                    : ServingException.wrap(
                            ErrorCode.INVALID_ARGUMENT,
                            "batching strategy " + jar + " of model '" + config.name() + "' cannot be used: "
                                    + e.getMessage(),
                            e);
        }
    }

    @Override
    public @Nullable Object begin() {
        return strategy.begin();
    }

    @Override
    public boolean include(InferenceJob job, @Nullable Object state) {
        return strategy.include(job, state);
    }

    @Override
    public void end(@Nullable Object state) {
        strategy.end(state);
    }

    @Override
    public void close() {
        try {
            strategy.close();
        } finally {
            end(classes);
        }
    }

    private static void end(URLClassLoader classes) {
        try {
            classes.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
