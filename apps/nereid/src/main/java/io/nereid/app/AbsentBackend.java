// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Stands for the backend of a plugin of the house's that is not installed, or is broken: its models are recognised, and
 * say what is missing when they are to be loaded. Immutable.
 */
final class AbsentBackend implements Backend {
    private final PluginManifest plugin;
    private final @Nullable String broken;

    /** @param broken what is wrong with it, or null when it is not installed */
    AbsentBackend(PluginManifest plugin, @Nullable String broken) {
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

    /** Null, so that {@link #load} is asked and can say more. */
    @Override
    public @Nullable String unavailable() {
        return null;
    }

    /** Why there is no such backend. */
    String reason() {
        return broken == null ? "not installed" : "broken: " + broken;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + config.name() + "' needs the backend '" + plugin.name() + "', whose plugin is "
                        + (broken == null ? "not installed" : "broken: " + broken),
                "run 'nereid plugins install " + plugin.name() + "', then start the server again");
    }
}
