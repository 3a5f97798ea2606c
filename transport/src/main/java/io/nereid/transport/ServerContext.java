// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.netty.handler.codec.DateFormatter;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What all connections of one server share. Thread-safe: immutable but for counters, a flag and the cached date. */
final class ServerContext {
    /** Told to every connection when the server drains: finish what is in flight, then close. */
    record Drain(long limitMillis) {}

    private static final Logger LOG = LoggerFactory.getLogger(ServerContext.class);
    private static final long SECOND = 1_000_000_000L;

    final ServerOptions options;
    final TransportStats stats = new TransportStats();

    /** Set when clients should go elsewhere: HTTP/1.1 answers carry {@code connection: close}. */
    volatile boolean draining;

    private volatile Now now;

    /** The time of day as header text, true for a second from {@code nanos}. Immutable. */
    private record Now(long nanos, String text, byte[] line) {}

    ServerContext(ServerOptions options) {
        this.options = options;
        this.now = render(options.clock().nanos());
    }

    long nanos() {
        return options.clock().nanos();
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
    byte[] dateLine(long nanos) {
        return now(nanos).line();
    }

    /** The value of the {@code date} header. */
    String date(long nanos) {
        return now(nanos).text();
    }

    /** What a client is told of something thrown: refusals as they are, all else as INTERNAL with an id that is logged. */
    ServingException published(Throwable thrown, String what) {
        if (thrown instanceof ServingException e && e.code() != ErrorCode.INTERNAL && e.code() != ErrorCode.UNKNOWN) {
            return e;
        }
        String id =
                String.format(Locale.ROOT, "%08x", ThreadLocalRandom.current().nextInt());
        LOG.error("error {} in {}", id, what, thrown);
        String text = thrown instanceof ServingException e ? e.describe() : "internal error";
        return ServingException.of(ErrorCode.INTERNAL, text + " [error id " + id + "]");
    }
}
