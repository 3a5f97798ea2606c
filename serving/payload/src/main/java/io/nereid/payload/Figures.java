// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** What has become of a log's events. Thread-safe. */
final class Figures {
    /** Why an event was lost. */
    enum Loss {
        /** Too many events waited. */
        QUEUE_FULL,
        /** The bodies that waited were too large together, or one by itself. */
        QUEUE_BYTES,
        /** It could not be sent as often as it was tried. */
        UNDELIVERED,
        /** The receiver does not want it. */
        REFUSED,
        /** The log was closed before it could be sent. */
        CLOSED
    }

    final LongAdder sent = new LongAdder();
    final LongAdder sentBytes = new LongAdder();
    final LongAdder retries = new LongAdder();
    final LongAdder sampledOut = new LongAdder();
    final LongAdder withheld = new LongAdder();
    private final Map<Loss, LongAdder> lost = new EnumMap<>(Loss.class);

    Figures() {
        for (Loss loss : Loss.values()) {
            lost.put(loss, new LongAdder());
        }
    }

    LongAdder lost(Loss loss) {
        LongAdder of = lost.get(loss);
        if (of == null) {
            throw new IllegalStateException("every loss is counted");
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

    /** How a loss is called in the page of metrics. */
    static String label(Loss loss) {
        return loss.name().toLowerCase(Locale.ROOT);
    }
}
