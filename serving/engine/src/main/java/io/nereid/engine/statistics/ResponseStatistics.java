// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import io.nereid.engine.statistics.ModelStatistics.Timed;
import io.nereid.observe.ModelStatisticsSnapshot.Response;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/** Statistics of a decoupled model's responses by their index in the response stream. Thread-safe, lock-free. */
public final class ResponseStatistics {
    /** Responses with a higher index are counted under this one, which bounds the memory for endless streams. */
    static final int MOST = 16_384;

    /** Statistics of one response index. Thread-safe, lock-free. */
    static final class OfNumber {
        final Timed infer = new Timed();
        final Timed output = new Timed();
        final Timed success = new Timed();
        final Timed failure = new Timed();
        final Timed empty = new Timed();
        final Timed cancel = new Timed();
    }

    private final Map<Integer, OfNumber> numbers = new ConcurrentSkipListMap<>();

    private OfNumber number(int index) {
        return numbers.computeIfAbsent(Math.min(index, MOST), i -> new OfNumber());
    }

    /** Counts a response that took {@code inferNanos} to compute and {@code outputNanos} to deliver. */
    public void responded(int index, long inferNanos, long outputNanos) {
        OfNumber n = number(index);
        n.infer.add(inferNanos);
        n.output.add(outputNanos);
        n.success.add(inferNanos + outputNanos);
    }

    /** Counts the end of a stream without a response. */
    public void ended(int index, long nanos) {
        number(index).empty.add(nanos);
    }

    public void failed(int index, boolean cancelled, long nanos) {
        OfNumber n = number(index);
        (cancelled ? n.cancel : n.failure).add(nanos);
    }

    Map<String, Response> report() {
        Map<String, Response> report = new LinkedHashMap<>();
        numbers.forEach((index, n) -> report.put(
                index.toString(),
                new Response(
                        n.infer.total(),
                        n.output.total(),
                        n.success.total(),
                        n.failure.total(),
                        n.empty.total(),
                        n.cancel.total())));
        return report;
    }
}
