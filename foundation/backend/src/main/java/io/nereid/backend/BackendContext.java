// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import java.nio.file.Path;
import java.util.Map;

/**
 * What the server gives every backend. Immutable.
 *
 * @param cores processors that runs may use together
 * @param scratch a directory of this process for extracted natives and the like
 * @param settings this backend's server-wide settings ({@code --backend-config})
 * @param autoComplete whether the backend may fill in inputs, outputs, batch size and scheduler that the configuration
 *     leaves out; when false it only checks them
 */
public record BackendContext(int cores, Path scratch, Map<String, String> settings, boolean autoComplete) {
    /** With automatic completion. */
    public BackendContext(int cores, Path scratch, Map<String, String> settings) {
        this(cores, scratch, settings, true);
    }
}
