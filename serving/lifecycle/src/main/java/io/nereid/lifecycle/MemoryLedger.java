// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.spi.ServableId;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Who holds how much memory: by estimate, and after loading by what was measured. Thread-safe by its lock. */
final class MemoryLedger {
    /** Holders that a refusal names. */
    private static final int NAMED = 5;

    private final long limit;

    /** By version itself, since two of the same number may be loaded beside each other. */
    private final Map<Version, Long> held = new HashMap<>();

    private long used;

    /** A ledger with a limit in bytes; 0 for none. */
    MemoryLedger(long limit) {
        this.limit = limit;
    }

    /** Whether {@code bytes} more would be booked now. */
    synchronized boolean fits(long bytes) {
        return limit <= 0 || bytes <= limit - used;
    }

    /** Whether {@code bytes} could be booked at all. */
    boolean everFits(long bytes) {
        return limit <= 0 || bytes <= limit;
    }

    /** Books {@code bytes} for a version, or says why not. */
    synchronized @Nullable ServingException reserve(Version v, long bytes) {
        if (!fits(bytes)) {
            return ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "model '" + v.id.model() + "' version " + v.id.version() + " does not fit into memory: it needs "
                            + Units.formatBytes(bytes) + ", and " + Units.formatBytes(Math.max(0, limit - used))
                            + " of " + Units.formatBytes(limit) + " are free" + holdersText(),
                    "unload another model, or raise the limit for models' memory");
        }
        correct(v, bytes);
        return null;
    }

    /** Changes what is booked; never refuses, since the memory is taken already. */
    synchronized void correct(Version v, long bytes) {
        Long before = bytes == 0 ? held.remove(v) : held.put(v, bytes);
        used += bytes - (before == null ? 0 : before);
    }

    /** Bytes booked for one version. */
    synchronized long booked(Version v) {
        return held.getOrDefault(v, 0L);
    }

    synchronized long used() {
        return used;
    }

    long limit() {
        return limit;
    }

    /** The versions for which something is booked. */
    synchronized List<Version> holders() {
        return List.copyOf(held.keySet());
    }

    private String holdersText() {
        if (held.isEmpty()) {
            return "";
        }
        String text = held.entrySet().stream()
                .sorted(Map.Entry.<Version, Long>comparingByValue()
                        .reversed()
                        .thenComparing(e -> e.getKey().id, Comparator.<ServableId>naturalOrder()))
                .limit(NAMED)
                .map(e -> e.getKey().id + " " + Units.formatBytes(e.getValue()))
                .collect(Collectors.joining(", "));
        return "; held by " + text + (held.size() > NAMED ? " and " + (held.size() - NAMED) + " more" : "");
    }
}
