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
 * @param storageUri the storage URI of the model's files, instead of a model of the repository; null for none. Only
 *     servers that fetch models for clients take it
 */
public record LoadOptions(
        @Nullable String config,
        Map<String, byte[]> files,
        @Nullable String storageUri) {
    /** No overrides. */
    public static final LoadOptions NONE = new LoadOptions(null, Map.of());

    /** Overrides of a model of the repository. */
    public LoadOptions(@Nullable String config, Map<String, byte[]> files) {
        this(config, files, null);
    }

    /** The model of a storage URI, with the configuration that is stored with it. */
    public static LoadOptions ofStorage(String uri) {
        return new LoadOptions(null, Map.of(), uri);
    }
}
