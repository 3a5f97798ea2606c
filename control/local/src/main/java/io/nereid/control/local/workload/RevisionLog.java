// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.workload;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The log of a revision: the last lines in memory, and all lines in a file that is rotated once. Each line begins with
 * its time. Thread-safe: guarded by one lock, which is held while a line is written.
 */
public final class RevisionLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RevisionLog.class);
    private static final int MAX_LINE = 16_384;

    private final Path file;
    private final int lines;
    private final long bytes;
    private final Consumer<String> output;
    private final io.nereid.base.Clock clock;

    @GuardedBy("this") private final Deque<String> last = new ArrayDeque<>();

    @GuardedBy("this") private @Nullable BufferedWriter writer;

    @GuardedBy("this") private long written;

    @GuardedBy("this") private boolean broken;

    @GuardedBy("this") private boolean closed;

    /** Creates a log; the file is created with the first line. */
    public RevisionLog(Path file, int lines, long bytes, io.nereid.base.Clock clock) {
        this(file, lines, bytes, clock, line -> {});
    }

    /**
     * Creates a log whose lines go somewhere else as well.
     *
     * @param output receives each line without its time, while the log is locked
     */
    public RevisionLog(Path file, int lines, long bytes, io.nereid.base.Clock clock, Consumer<String> output) {
        this.output = output;
        this.file = file;
        this.lines = lines;
        this.bytes = bytes;
        this.clock = clock;
    }

    /** Adds a line, truncated to 16 KiB. */
    public synchronized void add(String text) {
        String line = Instant.ofEpochMilli(clock.millis()).truncatedTo(ChronoUnit.MILLIS) + " "
                + (text.length() > MAX_LINE ? text.substring(0, MAX_LINE) + "…" : text);
        last.addLast(line);
        if (last.size() > lines) {
            last.removeFirst();
        }
        output.accept(text);
        if (broken || closed) {
            return;
        }
        try {
            write(line);
        } catch (IOException e) {
            // A full disk must not stop the workload.
            broken = true;
            LOG.warn("{} can no longer be written; the log is kept in memory only: {}", file, e.getMessage());
        }
    }

    @GuardedBy("this") private void write(String line) throws IOException {
        if (writer == null) {
            Path directory = file.getParent();
            if (directory != null) {
                Files.createDirectories(directory);
            }
            written = Files.exists(file) ? Files.size(file) : 0;
            writer = open();
        }
        long length = line.getBytes(StandardCharsets.UTF_8).length + 1L;
        if (written > 0 && written + length > bytes) {
            writer.close();
            Files.move(file, file.resolveSibling(file.getFileName() + ".1"), StandardCopyOption.REPLACE_EXISTING);
            written = 0;
            writer = open();
        }
        writer.write(line);
        writer.write('\n');
        writer.flush();
        written += length;
    }

    private BufferedWriter open() throws IOException {
        return Files.newBufferedWriter(
                file, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Returns the last lines, oldest first. */
    public synchronized List<String> last(int most) {
        List<String> all = new ArrayList<>(last);
        return List.copyOf(all.subList(Math.max(0, all.size() - Math.max(0, most)), all.size()));
    }

    /** Closes the file; the lines in memory stay readable. */
    @Override
    public synchronized void close() {
        closed = true;
        if (writer != null) {
            try {
                writer.close();
            } catch (IOException e) {
                LOG.debug("{} cannot be closed", file, e);
            }
            writer = null;
        }
    }
}
