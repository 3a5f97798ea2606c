// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import io.nereid.observe.ModelStatisticsSnapshot.Batch;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.ObjIntConsumer;

/** Statistics of runs by batch size. Thread-safe, lock-free. */
public final class BatchStatistics {
    /** Sizes up to this limit are stored in an array; larger ones are stored in a map, as those above the first maximum of a model. */
    private static final int DIRECT = 1024;

    /** Statistics of one batch size. Thread-safe, lock-free. */
    public static final class Size {
        public final LongAdder runs = new LongAdder();
        final LongAdder input = new LongAdder();
        final LongAdder infer = new LongAdder();
        final LongAdder output = new LongAdder();
    }

    /** Rows that were added to reach an allowed batch size. */
    public final LongAdder padding = new LongAdder();

    /** Runs of traced requests by {@link Histogram#sizeBounds}. */
    public final Exemplars exemplars = new Exemplars(Histogram.sizeBounds());

    private final AtomicReferenceArray<Size> direct;
    private final Map<Integer, Size> large = new ConcurrentSkipListMap<>();

    BatchStatistics(int maxBatchSize) {
        direct = new AtomicReferenceArray<>(Math.min(maxBatchSize, DIRECT) + 1);
    }

    void add(int rows, long inputNanos, long inferNanos, long outputNanos) {
        Size size = size(rows);
        size.runs.increment();
        size.infer.add(inferNanos);
        if (inputNanos != 0) {
            size.input.add(inputNanos);
        }
        if (outputNanos != 0) {
            size.output.add(outputNanos);
        }
    }

    private Size size(int rows) {
        if (rows < 0 || rows >= direct.length()) {
            return large.computeIfAbsent(rows, r -> new Size());
        }
        Size size = direct.get(rows);
        if (size == null) {
            Size made = new Size();
            size = direct.compareAndSet(rows, null, made) ? made : direct.get(rows);
        }
        return size;
    }

    /** Passes every batch size that occurred to {@code action}, ascending. */
    public void forEach(ObjIntConsumer<Size> action) {
        for (int i = 0; i < direct.length(); i++) {
            Size size = direct.get(i);
            if (size != null) {
                action.accept(size, i);
            }
        }
        large.forEach((rows, size) -> action.accept(size, rows));
    }

    public long executions() {
        long[] sum = new long[1];
        forEach((size, rows) -> sum[0] += size.runs.sum());
        return sum[0];
    }

    List<Batch> report() {
        List<Batch> report = new ArrayList<>();
        forEach((size, rows) -> {
            long runs = size.runs.sum();
            report.add(new Batch(
                    rows,
                    new Total(runs, size.input.sum()),
                    new Total(runs, size.infer.sum()),
                    new Total(runs, size.output.sum())));
        });
        return report;
    }
}
