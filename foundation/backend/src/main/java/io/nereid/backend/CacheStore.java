// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * A key-value store for cached responses, such as Redis: the plugin interface of Triton's cache API. Keys and values
 * are opaque. A store may evict an entry at any time, but must never return anything but the value that was stored
 * under an equal key. Implementations are thread-safe and never block the caller.
 */
public interface CacheStore extends AutoCloseable {
    /**
     * Looks up a key. Completes with the value, or with null when there is none; a local store completes at once. The
     * caller must not change the returned array.
     */
    CompletionStage<byte @Nullable []> get(byte[] key);

    /** Stores a value; silently ignores one that is too large. The store must not change the arrays. */
    void put(byte[] key, byte[] value);

    /** Removes every entry whose key begins with {@code keyPrefix}. */
    void purge(byte[] keyPrefix);

    /** Statistics for the metrics endpoint, such as entries, bytes and evictions: value by name. */
    Map<String, Long> statistics();

    @Override
    void close();
}
