// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import io.nereid.base.Threads;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes traces to files: to a single one that is completed when the server stops, or to numbered files with
 * {@code log_frequency} traces each. Thread-safe: its own thread writes, so that requests do not wait for the disk.
 */
final class TraceFile {
    private static final Logger LOG = LoggerFactory.getLogger(TraceFile.class);

    private final String path;
    private final AtomicLong ids = new AtomicLong();
    private final ExecutorService writing = Threads.single("trace");
    /** This and the following fields are confined to the writing thread. */
    private final List<String> gathered = new ArrayList<>();

    private @Nullable Writer open;
    private int index;
    private boolean failed;

    TraceFile(String path) {
        this.path = path;
    }

    String path() {
        return path;
    }

    long nextId() {
        return ids.incrementAndGet();
    }

    void add(String objects, long frequency) {
        if (path.isEmpty()) {
            return;
        }
        try {
            writing.execute(() -> {
                try {
                    write(objects, frequency);
                } catch (IOException e) {
                    warnOnce(e);
                }
            });
        } catch (RejectedExecutionException closed) {
            LOG.debug("a trace was added after the file was closed");
        }
    }

    private void write(String objects, long frequency) throws IOException {
        if (frequency > 0) {
            gathered.add(objects);
            if (gathered.size() >= frequency) {
                Files.writeString(Path.of(path + "." + index++), "[" + String.join(",", gathered) + "]");
                gathered.clear();
            }
            return;
        }
        Writer w = open;
        if (w == null) {
            w = Files.newBufferedWriter(Path.of(path), StandardCharsets.UTF_8);
            open = w;
            w.write('[');
        } else {
            w.write(",\n");
        }
        w.write(objects);
        w.flush();
    }

    private void warnOnce(IOException e) {
        if (!failed) {
            LOG.warn("traces cannot be written to '{}': {}", path, e.toString());
        }
        failed = true;
    }

    void close() {
        try {
            writing.execute(() -> {
                try {
                    if (!gathered.isEmpty()) {
                        Files.writeString(Path.of(path + "." + index++), "[" + String.join(",", gathered) + "]");
                        gathered.clear();
                    }
                    Writer w = open;
                    if (w != null) {
                        w.write("]\n");
                        w.close();
                    }
                } catch (IOException e) {
                    warnOnce(e);
                }
            });
            writing.shutdown();
            if (!writing.awaitTermination(10, TimeUnit.SECONDS)) {
                LOG.warn("traces are still being written to '{}'", path);
            }
        } catch (RejectedExecutionException closed) {
            LOG.debug("closed twice");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
