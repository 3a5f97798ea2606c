// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.audit;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.transport.api.HttpReply;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.Locale;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the audit log as JSON lines, appended to a file on a thread of its own. {@link #record} does not block: when the
 * disk is slower than the requests, entries are dropped, and the next line says how many. Thread-safe.
 *
 * <pre>{@code
 * {"time":"2026-01-31T10:00:00.123Z","caller":"ops","permission":"manage","operation":"model-control","model":"iris",
 *  "method":"POST","path":"/v2/repository/models/iris/load","remote":"10.0.0.7:51234","outcome":"ok","status":200}
 * }</pre>
 */
public final class AuditLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(AuditLog.class);
    private static final int QUEUE = 16_384;
    private static final OpenOption[] APPEND = {StandardOpenOption.CREATE, StandardOpenOption.APPEND};

    private final Path file;
    private final BlockingQueue<AuditEntry> queue = new ArrayBlockingQueue<>(QUEUE);
    private final AtomicLong dropped = new AtomicLong();
    private final Thread thread;
    private BufferedWriter writer;
    private volatile boolean reopen;
    private volatile boolean closed;

    /**
     * Opens the file, which only its owner can read when it is made.
     *
     * @throws ServingException INVALID_ARGUMENT when it cannot be written
     */
    public AuditLog(Path file) {
        this.file = file;
        try {
            this.writer = open();
        } catch (IOException e) {
            throw ServingException.invalidArgument(
                    "--audit-log '" + file + "' cannot be written: " + e, "give a file in a directory that exists");
        }
        this.thread = Threads.named("audit-log").newThread(this::run);
        thread.start();
    }

    private BufferedWriter open() throws IOException {
        if (!Files.exists(file)
                && file.getFileSystem().supportedFileAttributeViews().contains("posix")) {
            Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        }
        return Files.newBufferedWriter(file, StandardCharsets.UTF_8, APPEND);
    }

    /** Adds an entry. Never blocks. */
    public void record(AuditEntry entry) {
        if (!queue.offer(entry)) {
            dropped.incrementAndGet();
        }
    }

    /** Opens the file again, after a rotation has moved it. */
    public void reopen() {
        reopen = true;
    }

    private void run() {
        boolean failing = false;
        while (!closed || !queue.isEmpty()) {
            try {
                AuditEntry entry = queue.poll(200, TimeUnit.MILLISECONDS);
                if (reopen) {
                    reopen = false;
                    writer.close();
                    writer = open();
                }
                if (entry == null) {
                    continue;
                }
                long lost = dropped.getAndSet(0);
                if (lost > 0) {
                    writer.write("{\"time\":\"" + Instant.ofEpochMilli(entry.timeMillis()) + "\",\"dropped\":" + lost
                            + "}\n");
                }
                writer.write(json(entry));
                if (queue.isEmpty()) {
                    writer.flush();
                }
                failing = false;
            } catch (IOException e) {
                if (!failing) {
                    LOG.error("the audit log '{}' cannot be written", file, e);
                }
                failing = true;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    static String json(AuditEntry entry) {
        StringBuilder b =
                new StringBuilder(256).append("{\"time\":\"").append(Instant.ofEpochMilli(entry.timeMillis()));
        b.append('"');
        field(b, "caller", entry.caller());
        field(b, "permission", entry.operation().permission().configName());
        field(b, "operation", entry.operation().name().toLowerCase(Locale.ROOT).replace('_', '-'));
        field(b, "model", entry.model());
        field(b, "method", entry.method());
        field(b, "path", entry.path());
        field(b, "remote", entry.remote());
        field(b, "requestId", entry.requestId());
        field(b, "outcome", entry.outcome().name().toLowerCase(Locale.ROOT));
        return b.append(",\"status\":").append(entry.status()).append("}\n").toString();
    }

    private static void field(StringBuilder b, String name, @Nullable String value) {
        if (value != null) {
            b.append(",\"").append(name).append("\":").append(HttpReply.quote(value));
        }
    }

    /** Writes what was recorded, for some seconds at most, and closes the file. */
    @Override
    public void close() {
        closed = true;
        try {
            thread.join(5_000);
            writer.close();
        } catch (IOException e) {
            LOG.error("the audit log '{}' cannot be closed", file, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
