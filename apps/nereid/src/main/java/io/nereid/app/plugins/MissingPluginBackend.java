// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.app.plugins.PluginManifest.KnownBackend;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Takes the place of a backend of a known plugin when the plugin is not installed or is broken. The plugin's models are
 * recognised, and loading one fails with the command that installs the plugin. Immutable.
 */
public final class MissingPluginBackend implements Backend {
    private final String plugin;
    private final KnownBackend backend;
    private final @Nullable String broken;

    /**
     * Creates the substitute for a backend.
     *
     * @param plugin the name of the plugin
     * @param broken why the plugin is broken; null when it is not installed
     */
    MissingPluginBackend(String plugin, KnownBackend backend, @Nullable String broken) {
        this.plugin = plugin;
        this.backend = backend;
        this.broken = broken;
    }

    @Override
    public String name() {
        return backend.name();
    }

    @Override
    public List<String> platforms() {
        return backend.platforms();
    }

    @Override
    public List<String> defaultFiles() {
        return backend.files();
    }

    @Override
    public boolean recognises(Path file) {
        return backend.recognises(file);
    }

    /** Returns null, so that {@link #load} is called: its exception carries the remedy. */
    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    /** Why the backend is missing. */
    public String reason() {
        return broken == null ? "not installed" : "broken: " + broken;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + config.name() + "' needs the backend '" + backend.name() + "', whose plugin is "
                        + (broken == null ? "not installed" : "broken: " + broken),
                "run 'nereid plugins install " + plugin + "', then restart the server");
    }
}
