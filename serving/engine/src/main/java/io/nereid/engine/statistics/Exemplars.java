// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import io.nereid.observe.metrics.Exemplar;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The last traced value of each bucket of a histogram. Takes no memory before the first one, since most servers trace
 * few requests or none. Thread-safe.
 */
public final class Exemplars {
    private final long[] bounds;
    private volatile @Nullable AtomicReferenceArray<@Nullable Exemplar> last;

    /** @param bounds the upper bounds of the buckets, ascending; values above all of them have a bucket too */
    Exemplars(long[] bounds) {
        this.bounds = bounds;
    }

    /** Keeps a value of a traced request; a request without an id is not written anywhere, and not kept. */
    void record(long value, String traceId) {
        if (traceId.isEmpty()) {
            return;
        }
        AtomicReferenceArray<@Nullable Exemplar> all = last;
        if (all == null) {
            synchronized (this) {
                all = last;
                if (all == null) {
                    all = new AtomicReferenceArray<>(bounds.length + 1);
                    last = all;
                }
            }
        }
        all.set(Histogram.bucket(bounds, value), new Exemplar(traceId, value));
    }

    /** The last value in a bucket, in the unit of the bounds; null without one. */
    public @Nullable Exemplar at(int bucket) {
        AtomicReferenceArray<@Nullable Exemplar> all = last;
        return all == null ? null : all.get(bucket);
    }
}
