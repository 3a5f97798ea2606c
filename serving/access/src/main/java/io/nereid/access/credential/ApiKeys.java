// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The API keys of a file, ready to be looked up. {@link #reload} reads the file again; when that fails, the keys from
 * before stay. Thread-safe.
 */
public final class ApiKeys {
    private static final Logger LOG = LoggerFactory.getLogger(ApiKeys.class);
    /** What an unknown id is compared with, so that it takes as long as a wrong secret. */
    private static final ApiKey UNKNOWN =
            new ApiKey("", "0".repeat(12), "0".repeat(64), List.of(), Instant.EPOCH, null, null);

    private final ApiKeyFile file;
    private final Map<String, Instant> used = new ConcurrentHashMap<>();
    private volatile Map<String, ApiKey> byId = Map.of();
    private boolean unwritable;

    /**
     * Reads a file.
     *
     * @throws ServingException as {@link ApiKeyFile#read}
     */
    public ApiKeys(ApiKeyFile file) {
        this.file = file;
        reload();
    }

    /** Reads the file again; true when the keys have changed. */
    public boolean reload() {
        Map<String, ApiKey> next = new HashMap<>();
        for (ApiKey key : file.read()) {
            next.put(key.id(), key);
        }
        boolean changed = !next.equals(byId);
        byId = Map.copyOf(next);
        return changed;
    }

    /** The number of keys. */
    public int size() {
        return byId.size();
    }

    /** Whether a text has the form of an API key. */
    public static boolean isKey(String text) {
        return text.startsWith(ApiKey.PREFIX);
    }

    /** The id of a text in the form of a key, which is not secret; null for another text. */
    public static @Nullable String idOf(String text) {
        return ApiKey.idOf(text);
    }

    /** The key that a client sent, when it is right and valid now; else null. */
    public @Nullable ApiKey verify(String text, Instant now) {
        String id = ApiKey.idOf(text);
        ApiKey key = id == null ? null : byId.get(id);
        boolean right = (key == null ? UNKNOWN : key).matches(text);
        return key != null && right && key.validAt(now) ? key : null;
    }

    /** Notes the use of a key, to be written by {@link #writeUse}. */
    public void used(ApiKey key, Instant now) {
        used.put(key.id(), now);
    }

    /** Writes when keys were used last; called now and then. */
    public synchronized void writeUse() {
        Map<String, Instant> times = new HashMap<>();
        for (String id : List.copyOf(used.keySet())) {
            Instant time = used.remove(id);
            if (time != null) {
                times.put(id, time);
            }
        }
        if (times.isEmpty() || unwritable) {
            return;
        }
        try {
            file.writeLastUsed(times);
        } catch (IOException e) {
            unwritable = true;
            LOG.warn(
                    "the times of last use of API keys cannot be written beside '{}': {}", file.path(), e.getMessage());
        }
    }
}
