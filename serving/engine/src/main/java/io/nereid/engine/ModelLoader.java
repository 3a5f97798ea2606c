// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelSource;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Loads one stored version on a backend. Called by one thread at a time. */
final class ModelLoader implements Loader {
    private final ModelSource source;
    private final ModelConfig config;
    private final Backend backend;
    private final String fingerprint;
    private final BackendContext context;
    private final Servables servables;
    private @Nullable ModelServable servable;

    ModelLoader(
            ModelSource source,
            ModelConfig config,
            Backend backend,
            String fingerprint,
            BackendContext context,
            Servables servables) {
        this.source = source;
        this.config = config;
        this.backend = backend;
        this.fingerprint = fingerprint;
        this.context = context;
        this.servables = servables;
    }

    @Override
    public ServableId id() {
        return source.id();
    }

    @Override
    public String fingerprint() {
        return fingerprint;
    }

    @Override
    public String backend() {
        return backend.name();
    }

    /** The size of the version's files: an engine holds at least the weights. */
    @Override
    public long estimateBytes() {
        try (Stream<java.nio.file.Path> files = Files.walk(source.versionDirectory())) {
            return files.filter(Files::isRegularFile)
                    .mapToLong(f -> f.toFile().length())
                    .sum();
        } catch (IOException | UncheckedIOException e) {
            return 0;
        }
    }

    @Override
    public Servable load() {
        String unavailable = backend.unavailable();
        if (unavailable != null) {
            throw ServingException.of(
                    Code.FAILED_PRECONDITION, "backend '" + backend.name() + "' cannot work here: " + unavailable);
        }
        BackendModel model = backend.load(source, config, context);
        try {
            ModelServable made = servables.make(source.id(), model);
            servable = made;
            return made;
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    @Override
    public void warm() {
        ModelServable loaded = servable;
        if (loaded != null) {
            new WarmupRequests(source.modelDirectory(), loaded, servables.clock()).run();
            servables.show(loaded);
        }
    }

    @Override
    public void unload() {
        ModelServable loaded = servable;
        servable = null;
        if (loaded != null) {
            servables.hide(loaded);
            loaded.unload();
        }
    }
}
