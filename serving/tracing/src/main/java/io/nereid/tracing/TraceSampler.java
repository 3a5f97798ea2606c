// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** Samples every n-th request until the maximum number of traces is reached. Thread-safe. */
final class TraceSampler {
    private final TraceSettings settings;
    private final AtomicLong seen = new AtomicLong();
    private final AtomicLong left;

    TraceSampler(TraceSettings settings) {
        this.settings = settings;
        this.left = new AtomicLong(settings.count());
    }

    TraceSettings settings() {
        return settings;
    }

    /** Counts a request and returns whether it is traced. */
    boolean sample() {
        if (!settings.on() || seen.incrementAndGet() % settings.rate() != 0) {
            return false;
        }
        return settings.count() < 0 || left.getAndUpdate(n -> n > 0 ? n - 1 : 0) > 0;
    }

    /** Returns the settings in the form that clients see; the count is the remaining number of traces. */
    Map<String, List<String>> shown() {
        Map<String, List<String>> shown = settings.shown();
        shown.put("trace_count", List.of(Long.toString(left.get())));
        return shown;
    }
}
