// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one pod. A model's bytes are reserved before its load, corrected by the measured size, and counted until
 * its unload has ended, so the sum never exceeds the limit by what is declared. Evicts the least recently used copies;
 * copies with requests in flight and pinned ones stay. Confined to the owner of the {@link PoolPlacement}.
 */
final class PodMemory {
    /** A model on the pod: its copy is null while it loads. */
    private static final class Held {
        private final boolean pinned;
        private long bytes;
        private @Nullable ModelCopy copy;
        private boolean leaving;

        Held(long bytes, boolean pinned) {
            this.bytes = bytes;
            this.pinned = pinned;
        }
    }

    private final long limit;
    private final Map<String, Held> held = new LinkedHashMap<>();
    private long used;
    private long leaving;

    PodMemory(long limit) {
        this.limit = limit;
    }

    long limit() {
        return limit;
    }

    /** The bytes of all models that are loading, loaded or leaving. */
    long used() {
        return used;
    }

    long free() {
        return limit - used;
    }

    /** The bytes that unloads in progress will free. */
    long leaving() {
        return leaving;
    }

    int count() {
        return held.size();
    }

    boolean holds(String model) {
        return held.containsKey(model);
    }

    boolean isLoading(String model) {
        Held one = held.get(model);
        return one != null && one.copy == null && !one.leaving;
    }

    boolean isLeaving(String model) {
        Held one = held.get(model);
        return one != null && one.leaving;
    }

    long bytes(String model) {
        Held one = held.get(model);
        return one == null ? 0 : one.bytes;
    }

    List<String> models() {
        return List.copyOf(held.keySet());
    }

    /**
     * The bytes that could be free once all idle copies that are not pinned have gone.
     *
     * @param before copies that were used since then stay; null for no such limit
     */
    long attainable(@Nullable Long before) {
        long attainable = free();
        for (Held one : held.values()) {
            if (one.leaving || evictable(one, before)) {
                attainable += one.bytes;
            }
        }
        return attainable;
    }

    /** When the copy that would be evicted first was used last; null when none can be. */
    @Nullable Long oldestUse() {
        Long oldest = null;
        for (Held one : held.values()) {
            if (one.copy != null && !one.pinned && !one.leaving) {
                long use = one.copy.lastUsed();
                if (oldest == null || use - oldest < 0) {
                    oldest = use;
                }
            }
        }
        return oldest;
    }

    /**
     * Chooses the copies that must go for {@code bytes} more, and closes them. They count as leaving until {@link #release}.
     *
     * @param before copies that were used since then stay; null for no such limit
     * @return null when the bytes cannot be freed now: then nothing was closed
     */
    @Nullable List<ModelCopy> evict(long bytes, @Nullable Long before) {
        long missing = bytes - free() - leaving;
        List<ModelCopy> victims = new ArrayList<>();
        if (missing <= 0) {
            return victims;
        }
        List<Held> candidates = new ArrayList<>();
        long attainable = 0;
        for (Held one : held.values()) {
            if (evictable(one, before)) {
                candidates.add(one);
                attainable += one.bytes;
            }
        }
        if (attainable < missing) {
            return null;
        }
        candidates.sort(Comparator.comparingLong(one -> one.copy == null ? 0 : one.copy.lastUsed()));
        for (Held one : candidates) {
            ModelCopy copy = one.copy;
            if (missing <= 0) {
                break;
            }
            if (copy != null && copy.closeIfIdle()) {
                leave(copy.model());
                missing -= one.bytes;
                victims.add(copy);
            }
        }
        return victims;
    }

    /** Reserves the memory of a load. */
    void reserve(String model, long bytes, boolean pinned) {
        if (bytes > free()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model '" + model + "' needs " + bytes + " bytes and " + free() + " of " + limit + " are free",
                    "evict other models first");
        }
        held.put(model, new Held(bytes, pinned));
        used += bytes;
    }

    /** Ends a load: the measured size replaces the reserved one. */
    void loaded(ModelCopy copy, long measured) {
        Held one = held.get(copy.model());
        if (one != null) {
            used += measured - one.bytes;
            one.bytes = measured;
            one.copy = copy;
        }
    }

    /** Marks a copy as leaving: its memory counts until {@link #release}. */
    void leave(String model) {
        Held one = held.get(model);
        if (one != null && !one.leaving) {
            one.leaving = true;
            leaving += one.bytes;
        }
    }

    /** Forgets a model whose unload has ended or whose load has failed. */
    void release(String model) {
        Held one = held.remove(model);
        if (one != null) {
            used -= one.bytes;
            if (one.leaving) {
                leaving -= one.bytes;
            }
        }
    }

    /** The figures of a refusal. */
    String describe() {
        long busy = 0;
        long pinned = 0;
        for (Held one : held.values()) {
            if (one.pinned) {
                pinned += one.bytes;
            } else if (one.copy == null || !one.copy.isIdle()) {
                busy += one.bytes;
            }
        }
        return free() + " of " + limit + " bytes free, " + busy + " in use, " + pinned + " pinned";
    }

    private static boolean evictable(Held one, @Nullable Long before) {
        ModelCopy copy = one.copy;
        return copy != null
                && !one.pinned
                && !one.leaving
                && copy.isIdle()
                && (before == null || copy.lastUsed() - before < 0);
    }
}
