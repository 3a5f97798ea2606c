// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the server gives every backend. Immutable.
 *
 * @param cores processors that runs may use together
 * @param scratch a directory of this process for extracted natives and the like
 * @param settings this backend's server-wide settings ({@code --backend-config})
 * @param autoComplete whether the backend may fill in inputs, outputs, batch size and scheduler that the configuration
 *     leaves out; when false it only checks them
 * @param engine the server's own door, for models that ask other models; null where there is no server
 * @param control the other door, for models that load others; null where there is no server
 * @param backends all that there are, for a backend that hands models over to another
 */
public record BackendContext(
        int cores,
        Path scratch,
        Map<String, String> settings,
        boolean autoComplete,
        @Nullable InferenceEngine engine,
        @Nullable ModelControl control,
        List<Backend> backends) {
    /** Without other backends. */
    public BackendContext(
            int cores,
            Path scratch,
            Map<String, String> settings,
            boolean autoComplete,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control) {
        this(cores, scratch, settings, autoComplete, engine, control, List.of());
    }

    /** Without a server around it. */
    public BackendContext(int cores, Path scratch, Map<String, String> settings, boolean autoComplete) {
        this(cores, scratch, settings, autoComplete, null, null);
    }

    /** With automatic completion. */
    public BackendContext(int cores, Path scratch, Map<String, String> settings) {
        this(cores, scratch, settings, true);
    }
}
