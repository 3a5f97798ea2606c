// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import io.nereid.base.Threads;
import java.io.PrintWriter;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Prints a line every second while an operation runs. Confined to one thread. */
public final class ProgressPrinter {
    private ProgressPrinter() {}

    /** Runs an operation and returns its result; meanwhile prints its description and the elapsed seconds. */
    public static <T> T during(String what, PrintWriter err, Supplier<T> work) {
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
