// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Takes the place of a known plugin's backend when the plugin is not installed or is broken. The plugin's models are
 * recognised, and loading one fails with the command that installs the plugin. Immutable.
 */
public final class MissingPluginBackend implements Backend {
    private final PluginManifest plugin;
    private final @Nullable String broken;

    /** @param broken why the plugin is broken; null when it is not installed */
    MissingPluginBackend(PluginManifest plugin, @Nullable String broken) {
        this.plugin = plugin;
        this.broken = broken;
    }

    @Override
    public String name() {
        return plugin.name();
    }

    @Override
    public List<String> platforms() {
        return plugin.platforms();
    }

    @Override
    public List<String> defaultFiles() {
        return plugin.files();
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
                "model '" + config.name() + "' needs the backend '" + plugin.name() + "', whose plugin is "
                        + (broken == null ? "not installed" : "broken: " + broken),
                "run 'nereid plugins install " + plugin.name() + "', then restart the server");
    }
}
