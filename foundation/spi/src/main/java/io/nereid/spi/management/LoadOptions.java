// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Overrides of a load request. Immutable.
 *
 * @param config the configuration as JSON, instead of the stored one; null for the stored one
 * @param files contents by path inside the model's directory, instead of the stored files; empty for the stored
 *     files. Files require a {@code config}
 */
public record LoadOptions(@Nullable String config, Map<String, byte[]> files) {
    /** No overrides. */
    public static final LoadOptions NONE = new LoadOptions(null, Map.of());
}
