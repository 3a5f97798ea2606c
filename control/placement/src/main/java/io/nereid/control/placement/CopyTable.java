// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/**
 * The loaded copies of all models of a pool, for the threads of requests. Thread-safe and without locks for readers; only
 * {@link PoolPlacement} changes it.
 *
 * <p>Among several copies the less utilised of two random ones is taken (M. Mitzenmacher: The Power of Two Choices in
 * Randomized Load Balancing, 2001): as even as the least loaded one in practice, without a herd of routers that all run to
 * the same pod.
 *
 * <pre>{@code
 * ModelCopy copy = table.acquire("iris", random.nextLong(), clock.nanos());
 * if (copy == null) {
 *     placement.request("iris", clock.nanos());   // on the owner's thread; the request waits for the load
 * } else {
 *     try { forward(copy.pod()); } finally { copy.release(busyNanos); }
 * }
 * }</pre>
 */
public final class CopyTable {
    private final ConcurrentMap<String, ModelCopy[]> copies = new ConcurrentHashMap<>();

    CopyTable() {}

    /**
     * Takes a copy for one request; the caller must {@link ModelCopy#release} it.
     *
     * @param random 64 random bits
     * @return null when the model has no loaded copy
     */
    public @Nullable ModelCopy acquire(String model, long random, long now) {
        ModelCopy[] all = copies.get(model);
        if (all == null) {
            return null;
        }
        if (all.length > 1) {
            int first = (int) ((random >>> 33) % all.length);
            int second = (first + 1 + (int) ((random & 0x7fffffff) % (all.length - 1))) % all.length;
            boolean swap = all[second].utilisation() < all[first].utilisation();
            if (all[swap ? second : first].tryAcquire(now)) {
                return all[swap ? second : first];
            }
        }
        for (ModelCopy copy : all) {
            if (copy.tryAcquire(now)) {
                return copy;
            }
        }
        return null;
    }

    /** The pods with a loaded copy of a model. */
    public List<String> pods(String model) {
        ModelCopy[] all = copies.get(model);
        return all == null ? List.of() : Arrays.stream(all).map(ModelCopy::pod).toList();
    }

    void add(ModelCopy copy) {
        copies.merge(copy.model(), new ModelCopy[] {copy}, (a, b) -> {
            ModelCopy[] joined = Arrays.copyOf(a, a.length + 1);
            joined[a.length] = copy;
            return joined;
        });
    }

    void remove(ModelCopy copy) {
        copies.computeIfPresent(copy.model(), (name, all) -> {
            ModelCopy[] rest = Arrays.stream(all).filter(c -> c != copy).toArray(ModelCopy[]::new);
            return rest.length == 0 ? null : rest;
        });
    }
}
