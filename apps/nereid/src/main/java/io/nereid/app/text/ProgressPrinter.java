// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import io.nereid.base.Threads;
import java.io.PrintWriter;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Shows that an operation goes on, in one line that is overwritten and cleared at the end. Only where standard error is a terminal:
 * a log or a pipe gets nothing. Confined to one thread.
 */
public final class ProgressPrinter {
    private static final String CLEAR = "\r\u001b[K";
    private static final int WIDTH = 20;

    private ProgressPrinter() {}

    /** Runs an operation and returns its result; meanwhile shows its description and the elapsed seconds. */
    public static <T> T during(String what, PrintWriter err, Supplier<T> work) {
        return Terminal.err() ? shown(what, err, work) : work.get();
    }

    /** Runs an operation as {@link #during} does on a terminal. */
    static <T> T shown(String what, PrintWriter err, Supplier<T> work) {
        ScheduledThreadPoolExecutor timer = Threads.timer("progress");
        int[] seconds = {0};
        Future<?> ticks = timer.scheduleAtFixedRate(
                () -> {
                    err.print(CLEAR + "  " + what + " (" + ++seconds[0] + " s)");
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
            if (seconds[0] > 0) {
                clear(err);
            }
        }
    }

    /** Overwrites the line with a bar. Only for a terminal. */
    public static void bar(String what, long done, long total, PrintWriter err) {
        err.print(CLEAR + "  " + bar(done, total) + what);
        err.flush();
    }

    /** Clears the line. Only for a terminal. */
    public static void clear(PrintWriter err) {
        err.print(CLEAR);
        err.flush();
    }

    /** A bar with a space after it; empty where the total is not known. */
    static String bar(long done, long total) {
        if (total <= 0) {
            return "";
        }
        int filled = (int) Math.min(WIDTH, done * WIDTH / total);
        return "[" + "#".repeat(filled) + " ".repeat(WIDTH - filled) + "] ";
    }
}
