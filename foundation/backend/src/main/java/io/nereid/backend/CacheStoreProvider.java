// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import java.util.Map;

/** Creates stores. Implementations are found through {@link java.util.ServiceLoader}. */
public interface CacheStoreProvider {
    /** The name used in {@code --cache-config NAME,key=value}. */
    String name();

    /**
     * Opens a store, which the caller closes.
     *
     * @param settings the values of {@code --cache-config NAME,key=value}, by key
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an unknown, missing or invalid setting
     */
    CacheStore open(Map<String, String> settings);
}
