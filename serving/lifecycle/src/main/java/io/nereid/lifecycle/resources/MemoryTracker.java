// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.resources;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.spi.ServableId;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Tracks the memory of versions against a limit (TensorFlow Serving: {@code ResourceTracker}): the estimate from before
 * the load, then the measured size. Thread-safe by its lock.
 */
public final class MemoryTracker {
    /** Number of versions that an error message lists. */
    private static final int NAMED = 5;

    private final long limit;

    /** By object, since two loads of the same version number may exist during a reload. */
    @GuardedBy("this") private final Map<ManagedVersion, Long> held = new HashMap<>();

    @GuardedBy("this") private long used;

    /** Creates a tracker with a limit in bytes; 0 for no limit. */
    public MemoryTracker(long limit) {
        this.limit = limit;
    }

    /** Returns whether {@code bytes} more can be reserved now. */
    public synchronized boolean fits(long bytes) {
        return limit <= 0 || bytes <= limit - used;
    }

    /** Returns whether {@code bytes} could be reserved if no other version were loaded. */
    public boolean everFits(long bytes) {
        return limit <= 0 || bytes <= limit;
    }

    /** Reserves {@code bytes} for a version; returns null, or an error if they exceed the limit. */
    public synchronized @Nullable ServingException reserve(ManagedVersion v, long bytes) {
        if (!fits(bytes)) {
            return ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "model '" + v.id.model() + "' version " + v.id.version() + " does not fit into memory: it needs "
                            + Units.formatBytes(bytes) + ", and " + Units.formatBytes(Math.max(0, limit - used))
                            + " of " + Units.formatBytes(limit) + " are free" + holdersText(),
                    "unload another model, or raise the limit for models' memory");
        }
        set(v, bytes);
        return null;
    }

    /** Sets the reservation of a version, 0 to remove it. Not limited, since the memory is already in use. */
    public synchronized void set(ManagedVersion v, long bytes) {
        Long before = bytes == 0 ? held.remove(v) : held.put(v, bytes);
        used += bytes - (before == null ? 0 : before);
    }

    /** Returns the bytes reserved for a version. */
    public synchronized long reserved(ManagedVersion v) {
        return held.getOrDefault(v, 0L);
    }

    public synchronized long used() {
        return used;
    }

    public long limit() {
        return limit;
    }

    /** Returns the versions with a reservation. */
    public synchronized List<ManagedVersion> holders() {
        return List.copyOf(held.keySet());
    }

    @GuardedBy("this") private String holdersText() {
        if (held.isEmpty()) {
            return "";
        }
        String text = held.entrySet().stream()
                .sorted(Map.Entry.<ManagedVersion, Long>comparingByValue()
                        .reversed()
                        .thenComparing(e -> e.getKey().id, Comparator.<ServableId>naturalOrder()))
                .limit(NAMED)
                .map(e -> e.getKey().id + " " + Units.formatBytes(e.getValue()))
                .collect(Collectors.joining(", "));
        return "; held by " + text + (held.size() > NAMED ? " and " + (held.size() - NAMED) + " more" : "");
    }
}
