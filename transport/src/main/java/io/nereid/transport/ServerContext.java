// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.memory.RequestMemory;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.DateFormatter;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * State that all connections of a server share. Thread-safe: immutable but for counters, a flag and the cached date.
 */
public final class ServerContext {
    /** The event sent to every connection when the server drains: finish the requests in flight, then close. */
    public record Drain(long limitMillis) {}

    private static final Logger LOG = LoggerFactory.getLogger(ServerContext.class);
    private static final long SECOND = 1_000_000_000L;

    public final ServerOptions options;
    public final TransportStats stats = new TransportStats();
    public final CrossOrigin crossOrigin;
    public final RequestMemory memory;

    /** Runs what would hold up an event loop: decompression, and the compression of responses. */
    public final Executor codec;

    /** Set when the server drains: HTTP/1.1 responses then carry {@code connection: close}. */
    public volatile boolean draining;

    /** Whether every address that the server listens on is a loopback address or a Unix domain socket. */
    public volatile boolean local = true;

    private final Map<CheckedLoop, ConnectionChecks> checks = new ConcurrentHashMap<>();
    private volatile Now now;

    /** An event loop and the period of checks in milliseconds. Immutable. */
    private record CheckedLoop(EventLoop loop, long period) {}

    /** The {@code date} header, valid for a second from {@code nanos}. Immutable. */
    private record Now(long nanos, String text, byte[] line) {}

    /** @param codec runs what would hold up an event loop */
    public ServerContext(ServerOptions options, Executor codec) {
        this.options = options;
        this.crossOrigin = new CrossOrigin(options.corsOrigins());
        this.codec = codec;
        this.memory = new RequestMemory(
                options.budget(),
                options.clock(),
                options.requestTimeout(),
                Math.max(options.maxBodyBytes(), options.maxMessageBytes()));
        this.now = render(options.clock().nanos());
    }

    public long nanos() {
        return options.clock().nanos();
    }

    /** The checks that run in an event loop once in so many milliseconds. */
    public ConnectionChecks checks(EventLoop loop, long periodMillis) {
        return checks.computeIfAbsent(
                new CheckedLoop(loop, periodMillis), key -> new ConnectionChecks(key.loop(), key.period()));
    }

    @SuppressWarnings("JavaUtilDate") // what the formatter takes
    private Now render(long nanos) {
        String text = DateFormatter.format(new Date(options.clock().millis()));
        return new Now(nanos, text, ("date: " + text + "\r\n").getBytes(StandardCharsets.US_ASCII));
    }

    private Now now(long nanos) {
        Now n = now;
        if (nanos - n.nanos() >= SECOND) {
            n = render(nanos);
            now = n;
        }
        return n;
    }

    /** The {@code date} header line at a moment of the server's clock. */
    public byte[] dateLine(long nanos) {
        return now(nanos).line();
    }

    /** The value of the {@code date} header. */
    public String date(long nanos) {
        return now(nanos).text();
    }

    /**
     * The exception to report to the client. Errors with a meaning for the client and those that models answer with pass
     * unchanged, and a failed allocation refuses the request. INTERNAL, UNKNOWN and
     * any other exception are logged and become INTERNAL with an id that leads to the log, so that no internals leak.
     */
    public ServingException published(Throwable thrown, String what) {
        if (thrown instanceof ServingException e
                && (e.isModelError() || e.code() != ErrorCode.INTERNAL && e.code() != ErrorCode.UNKNOWN)) {
            return e;
        }
        if (thrown instanceof OutOfMemoryError) {
            LOG.warn("no memory for {}: {}", what, thrown.getMessage());
            return ServingException.from(thrown);
        }
        String id =
                String.format(Locale.ROOT, "%08x", ThreadLocalRandom.current().nextInt());
        LOG.error("error {} in {}", id, what, thrown);
        String text = thrown instanceof ServingException e ? e.describe() : "internal error";
        return ServingException.of(ErrorCode.INTERNAL, text + " [error id " + id + "]");
    }
}
