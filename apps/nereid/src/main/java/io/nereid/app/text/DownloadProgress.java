// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import io.nereid.base.Clock;
import io.nereid.storage.request.ProgressListener;
import java.time.Duration;
import java.util.Locale;
import java.util.function.Consumer;

/**
 * Reports a download in lines for a log: one at the start with the number of files and their size, one every five seconds, and one at the
 * end. Files of this machine, which are not downloaded, have none. Thread-safe: one lock.
 */
public final class DownloadProgress implements ProgressListener {
    private static final long EVERY = Duration.ofSeconds(5).toNanos();

    private final String what;
    private final Consumer<String> out;
    private final Clock clock;
    private long from;
    private long last;
    private long first;
    private boolean started;
    private boolean unpacking;

    /**
     * @param what names the download in the lines
     * @param out receives a line; called with the lock held
     */
    public DownloadProgress(String what, Consumer<String> out, Clock clock) {
        this.what = what;
        this.out = out;
        this.clock = clock;
        this.from = clock.nanos();
    }

    @Override
    public synchronized void on(Step step) {
        long now = clock.nanos();
        switch (step.phase()) {
            case DOWNLOADING -> {
                if (!started) {
                    started = true;
                    from = now;
                    last = now;
                    first = step.bytes();
                    out.accept("downloading " + what + ": " + size(step.totalFiles(), step.totalBytes()));
                } else if (now - last >= EVERY) {
                    last = now;
                    out.accept(what + ": " + text(step, step.bytes() - first, now - from));
                }
            }
            case UNPACKING -> {
                if (started && !unpacking && now - from >= EVERY) {
                    unpacking = true;
                    out.accept("unpacking " + what);
                }
            }
            case DONE -> {
                if (started) {
                    String seconds = String.format(Locale.ROOT, "%.1f s", (now - from) / 1e9);
                    out.accept("downloaded " + what + ": " + size(step.totalFiles(), step.bytes()) + " in " + seconds);
                } else if (step.totalFiles() > 0) {
                    out.accept(what + " is in the cache: " + size(step.totalFiles(), step.bytes()));
                }
                started = false;
                unpacking = false;
            }
            case LISTING, STORING -> {
                // The lines say what was downloaded, which is the long part.
            }
        }
    }

    private static String size(int files, long bytes) {
        String size = bytes < 0 ? "" : megabytes(bytes) + " MB";
        return files <= 0
                ? (size.isEmpty() ? "unknown size" : size)
                : files + (files == 1 ? " file" : " files") + (size.isEmpty() ? "" : ", " + size);
    }

    /**
     * How far a download is, such as {@code 12.0 of 120.3 MB, 2 of 5 files, 8.1 MB/s}.
     *
     * @param bytes since the download began or continued
     * @param nanos since then
     */
    public static String text(Step step, long bytes, long nanos) {
        return megabytes(step.bytes())
                + (step.totalBytes() < 0 ? " MB" : " of " + megabytes(step.totalBytes()) + " MB")
                + (step.totalFiles() > 1 ? ", " + step.files() + " of " + step.totalFiles() + " files" : "")
                + (nanos > 0 ? ", " + rate(bytes, nanos) : "");
    }

    /** The rate of a transfer as text, such as {@code 8.1 MB/s}. */
    public static String rate(long bytes, long nanos) {
        return String.format(Locale.ROOT, "%.1f MB/s", bytes * 1e3 / Math.max(1, nanos));
    }

    /** A number of bytes in MB, without the unit. */
    public static String megabytes(long bytes) {
        return String.format(Locale.ROOT, "%.1f", bytes / 1e6);
    }
}
