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
 */
public record BackendContext(int cores, Path scratch, Map<String, String> settings) {}
