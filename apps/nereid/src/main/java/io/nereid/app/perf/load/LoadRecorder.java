// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/** Records the requests of a load into the current window. Thread-safe. */
final class LoadRecorder {
    /** The most texts of failures that are kept apart. */
    private static final int FAILURES = 50;

    private final LoadTimer timer;
    private final LongAdder succeeded = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final Map<String, LongAdder> failures = new ConcurrentHashMap<>();
    private volatile MeasurementWindow window = new MeasurementWindow();

    LoadRecorder(LoadTimer timer) {
        this.timer = timer;
    }

    /**
     * Begins a request.
     *
     * @param dueNanos when the request is due; latency counts from there
     */
    Measured begin(long dueNanos) {
        while (true) {
            MeasurementWindow current = window;
            current.begin();
            if (current == window) {
                return new Measured(current, dueNanos);
            }
            current.leave(); // it has just been closed
        }
    }

    /** Begins a new window, and returns the one before. */
    MeasurementWindow roll() {
        MeasurementWindow before = window;
        window = new MeasurementWindow();
        return before;
    }

    /** The number of successful responses since the beginning. */
    long succeeded() {
        return succeeded.sum();
    }

    /** The number of requests that have ended since the beginning. */
    long ended() {
        return succeeded.sum() + failed.sum();
    }

    /** The failures since the last call, by reason. */
    Map<String, Long> takeFailures() {
        Map<String, Long> all = new TreeMap<>();
        for (String reason : List.copyOf(failures.keySet())) {
            LongAdder count = failures.remove(reason);
            if (count != null) {
                all.put(reason, count.sum());
            }
        }
        return all;
    }

    /** A request. */
    final class Measured implements LoadTarget.Completion {
        private final MeasurementWindow owner;
        private final long dueNanos;

        private Measured(MeasurementWindow owner, long dueNanos) {
            this.owner = owner;
            this.dueNanos = dueNanos;
        }

        /** Records that the request is sent now. */
        void sent() {
            owner.delayed(timer.nanos() - dueNanos);
        }

        @Override
        public void done(@Nullable String failure) {
            if (failure == null) {
                succeeded.increment();
                owner.success(timer.nanos() - dueNanos);
                return;
            }
            failed.increment();
            String reason = failures.size() < FAILURES || failures.containsKey(failure) ? failure : "other reasons";
            failures.computeIfAbsent(reason, r -> new LongAdder()).increment();
            owner.failure();
        }
    }
}
