// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Keeps answers for equal requests. Keys and values are opaque. An entry may vanish at any time; what is answered must be
 * what was put under an equal key. Implementations are thread-safe and never block.
 */
public interface CacheStore extends AutoCloseable {
    /** Makes stores; found through {@link java.util.ServiceLoader}. */
    interface Provider {
        /** The name used in {@code --cache-config NAME,key=value}. */
        String name();

        /**
         * A store.
         *
         * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a setting that is unknown, missing or wrong
         */
        CacheStore open(Map<String, String> settings);
    }

    /** The value under a key, or null. Completes at once for a local store. The arrays are read only. */
    CompletionStage<byte @Nullable []> get(byte[] key);

    /** Keeps a value; silently does not when it is too large. */
    void put(byte[] key, byte[] value);

    /** Forgets every entry whose key begins so. */
    void purge(byte[] keyPrefix);

    /** Entries, bytes, evictions, …, for the metrics page: value by name. */
    Map<String, Long> figures();

    @Override
    void close();
}
