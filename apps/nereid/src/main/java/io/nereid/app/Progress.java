// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.Threads;
import java.io.PrintWriter;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Tells once a second that something is still going on, from the first second on. Confined to one thread. */
final class Progress {
    private Progress() {}

    /** What {@code work} gives; meanwhile {@code err} hears {@code what} and the seconds. */
    static <T> T during(String what, PrintWriter err, Supplier<T> work) {
        ScheduledThreadPoolExecutor timer = Threads.timer("progress");
        int[] seconds = {0};
        Future<?> ticks = timer.scheduleAtFixedRate(
                () -> {
                    err.println("  " + what + " (" + ++seconds[0] + " s)");
                    err.flush();
                },
                1,
                1,
                TimeUnit.SECONDS);
        try {
            return work.get();
        } finally {
            ticks.cancel(false);
            timer.shutdownNow();
        }
    }
}
