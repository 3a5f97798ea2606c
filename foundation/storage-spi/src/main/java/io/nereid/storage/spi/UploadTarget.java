// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import io.nereid.base.ServingException;

/** Writes objects to a store. Thread-safe; calls block. */
public interface UploadTarget {
    /**
     * Writes an object with one request, or replaces the one with the same key atomically.
     *
     * @param key below the target's prefix, not encoded
     * @param type the content type
     * @throws ServingException UNAVAILABLE when a retry may succeed; others as {@link StorageFailures#ofWriting} makes
     *     them
     */
    void put(String key, String type, byte[] bytes);

    /** A key below a prefix. */
    static String below(String prefix, String key) {
        return prefix.isEmpty() || prefix.endsWith("/") ? prefix + key : prefix + "/" + key;
    }
}
