// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.top;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Comparator;
import java.util.Locale;

/**
 * What a version of a model did in an interval; NaN for what the server does not show. Immutable.
 *
 * @param rate successful requests per second
 * @param failures failed requests per second
 * @param p50Millis median of the latency
 * @param p99Millis 99th percentile of the latency
 * @param queued requests that wait
 * @param batch mean rows of a run
 * @param memoryBytes memory of the model
 * @param succeeded successful requests since the version was loaded
 * @param failed failed requests since the version was loaded
 */
record ModelRow(
        String model,
        String version,
        String state,
        double rate,
        double failures,
        double p50Millis,
        double p99Millis,
        double queued,
        double batch,
        double memoryBytes,
        long succeeded,
        long failed) {
    /** The orders of a table; the key of each is its first letter. */
    enum Order {
        NAME(Comparator.comparing(ModelRow::model)),
        RATE(descending(ModelRow::rate)),
        P99(descending(ModelRow::p99Millis)),
        ERRORS(descending(ModelRow::failures)),
        QUEUE(descending(ModelRow::queued)),
        MEMORY(descending(ModelRow::memoryBytes));

        @SuppressWarnings("ImmutableEnumChecker") // comparators of methods: they hold nothing that changes
        private final Comparator<ModelRow> comparator;

        Order(Comparator<ModelRow> comparator) {
            this.comparator = comparator
                    .thenComparing(ModelRow::model)
                    .thenComparingInt(row -> row.version().length())
                    .thenComparing(ModelRow::version);
        }

        Comparator<ModelRow> comparator() {
            return comparator;
        }

        /** The name on a command line. */
        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }

        private static Comparator<ModelRow> descending(java.util.function.ToDoubleFunction<ModelRow> value) {
            return Comparator.comparingDouble(row -> {
                double number = value.applyAsDouble(row);
                return Double.isNaN(number) ? 1 : -number;
            });
        }
    }

    /** The row for programs: null for what the server does not show. */
    void write(ObjectNode to) {
        to.put("model", model).put("version", version).put("state", state);
        number(to, "rate_requests_per_second", rate);
        number(to, "failures_per_second", failures);
        number(to, "latency_p50_ms", p50Millis);
        number(to, "latency_p99_ms", p99Millis);
        number(to, "queued_requests", queued);
        number(to, "batch_size_mean", batch);
        number(to, "memory_bytes", memoryBytes);
        to.put("requests_succeeded", succeeded).put("requests_failed", failed);
    }

    private static void number(ObjectNode to, String name, double value) {
        if (Double.isNaN(value)) {
            to.putNull(name);
        } else {
            to.put(name, value);
        }
    }
}
