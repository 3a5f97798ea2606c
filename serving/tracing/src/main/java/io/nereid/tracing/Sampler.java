// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** Picks every n-th request, up to a number of them. Thread-safe. */
final class Sampler {
    private final TraceSettings settings;
    private final AtomicLong seen = new AtomicLong();
    private final AtomicLong left;

    Sampler(TraceSettings settings) {
        this.settings = settings;
        this.left = new AtomicLong(settings.count());
    }

    TraceSettings settings() {
        return settings;
    }

    boolean sample() {
        if (!settings.on() || seen.incrementAndGet() % settings.rate() != 0) {
            return false;
        }
        return settings.count() < 0 || left.getAndUpdate(n -> n > 0 ? n - 1 : 0) > 0;
    }

    Map<String, List<String>> shown() {
        Map<String, List<String>> shown = settings.shown();
        shown.put("trace_count", List.of(Long.toString(left.get())));
        return shown;
    }
}
