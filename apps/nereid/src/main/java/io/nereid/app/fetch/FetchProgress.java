// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.fetch;

import io.nereid.app.text.DownloadProgress;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.base.Clock;
import io.nereid.storage.request.ProgressListener;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Prints the progress of a fetch, a line every few seconds. Thread-safe: one lock. */
final class FetchProgress implements ProgressListener {
    private static final long EVERY = Duration.ofSeconds(5).toNanos();
    private static final long OFTEN = Duration.ofMillis(200).toNanos();

    private final PrintWriter out;
    private final @Nullable PrintWriter terminal;
    private final Clock clock;
    private final long begin;
    private long last;
    private boolean downloading;
    /** When bytes began to arrive, and the bytes that were there before. */
    private long from;

    private long first;
    private boolean unpacking;

    /** @param terminal where a line may be overwritten, instead of lines in the log; null without a terminal */
    FetchProgress(PrintWriter out, @Nullable PrintWriter terminal, Clock clock) {
        this.out = out;
        this.terminal = terminal;
        this.clock = clock;
        this.begin = clock.nanos();
        this.last = begin;
    }

    @Override
    public synchronized void on(Step step) {
        long now = clock.nanos();
        switch (step.phase()) {
            case DOWNLOADING -> {
                if (!downloading) {
                    downloading = true;
                    from = now;
                    first = step.bytes();
                }
                if (now - last >= (terminal == null ? EVERY : OFTEN)) {
                    last = now;
                    String text = DownloadProgress.text(step, step.bytes() - first, now - from);
                    if (terminal == null) {
                        print("  " + text);
                    } else {
                        ProgressPrinter.bar(text, step.bytes(), step.totalBytes(), terminal);
                    }
                }
            }
            case UNPACKING -> {
                if (!unpacking && now - begin >= EVERY) {
                    unpacking = true;
                    print("  unpacking");
                }
            }
            case DONE -> {
                if (terminal != null) {
                    ProgressPrinter.clear(terminal);
                }
            }
            case LISTING, STORING -> {
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
}
