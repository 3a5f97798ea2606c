// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The counters of a payload log. Thread-safe. */
final class PayloadMetrics {
    /** Why an event was lost. The names are values of the metrics' label {@code reason}. */
    enum Loss {
        /** The queue had its maximum number of events. */
        QUEUE_FULL,
        /** The bodies in the queue, or a single body, exceeded the maximum of bytes. */
        QUEUE_BYTES,
        /** All attempts to send it failed. */
        UNDELIVERED,
        /** The receiver rejected it; a retry could not succeed. */
        REFUSED,
        /** The log was closed before it was sent. */
        CLOSED
    }

    final LongAdder sent = new LongAdder();
    final LongAdder sentBytes = new LongAdder();
    final LongAdder retries = new LongAdder();
    final LongAdder sampledOut = new LongAdder();
    final LongAdder withheld = new LongAdder();
    private final Map<Loss, LongAdder> lost = new EnumMap<>(Loss.class);

    PayloadMetrics() {
        for (Loss loss : Loss.values()) {
            lost.put(loss, new LongAdder());
        }
    }

    LongAdder lost(Loss loss) {
        LongAdder of = lost.get(loss);
        if (of == null) {
            throw new IllegalStateException("no counter for " + loss);
        }
        return of;
    }

    long lost() {
        long all = 0;
        for (LongAdder of : lost.values()) {
            all += of.sum();
        }
        return all;
    }

    /** The value of the label {@code reason}. */
    static String label(Loss loss) {
        return loss.name().toLowerCase(Locale.ROOT);
    }
}
