// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.fetch;

import io.nereid.base.Clock;
import io.nereid.storage.request.ProgressListener;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Locale;

/** Prints the progress of a fetch, a line every few seconds. Thread-safe: one lock. */
final class FetchProgress implements ProgressListener {
    private static final long EVERY = Duration.ofSeconds(5).toNanos();

    private final PrintWriter out;
    private final Clock clock;
    private final long begin;
    private long last;
    private boolean unpacking;

    FetchProgress(PrintWriter out, Clock clock) {
        this.out = out;
        this.clock = clock;
        this.begin = clock.nanos();
        this.last = begin;
    }

    @Override
    public synchronized void on(Step step) {
        long now = clock.nanos();
        switch (step.phase()) {
            case DOWNLOADING -> {
                if (now - last >= EVERY) {
                    last = now;
                    print("  " + megabytes(step.bytes())
                            + (step.totalBytes() < 0 ? " MB" : " of " + megabytes(step.totalBytes()) + " MB")
                            + (step.totalFiles() > 1
                                    ? ", " + step.files() + " of " + step.totalFiles() + " files"
                                    : ""));
                }
            }
            case UNPACKING -> {
                if (!unpacking && now - begin >= EVERY) {
                    unpacking = true;
                    print("  unpacking");
                }
            }
            case LISTING, STORING, DONE -> {
                // The command itself says what begins and what ended.
            }
        }
    }

    private void print(String line) {
        out.println(line);
        out.flush();
    }

    /** The seconds since the fetch began, as text. */
    synchronized String seconds() {
        return String.format(Locale.ROOT, "%.1f", (clock.nanos() - begin) / 1e9);
    }

    static String megabytes(long bytes) {
        return String.format(Locale.ROOT, "%.1f", bytes / 1e6);
    }
}
