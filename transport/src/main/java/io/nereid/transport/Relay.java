// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.Clock;
import io.nereid.endpoint.GrpcCall;
import io.nereid.endpoint.GrpcMethod;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.Upstream;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Sends requests on to other servers over connections that are kept: HTTP/1.1 for exchanges, HTTP/2 without TLS for gRPC
 * calls. Thread-safe; what it tells its callers it tells on event loops.
 */
public final class Relay implements Upstream {
    /** A relay with threads of its own, or those of the options. */
    public Relay(Options options) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void forward(HttpExchange exchange, Address address, String path, Terms terms) {
        throw new UnsupportedOperationException();
    }

    @Override
    public GrpcMethod.GrpcListener forward(GrpcCall call, Address address, Terms terms) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CompletionStage<Answer> send(String method, String url, List<Header> headers, byte[] body, Terms terms) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {}

    /**
     * How a relay works. Immutable.
     *
     * @param loops the threads that read and write sockets, best those of the server; closed by whoever made them. Null for
     *     threads of the relay's own
     * @param connectTimeout most time until a connection stands
     * @param idleTimeout how long a connection that nobody uses is kept
     * @param mostConnections HTTP/1.1 connections to one address; further requests wait in line, within their own timeout
     * @param clock the server's clock, by which deadlines of calls are told
     */
    public record Options(
            @Nullable EventLoops loops,
            Duration connectTimeout,
            Duration idleTimeout,
            int mostConnections,
            Clock clock) {
        /** Threads of its own, ten seconds to connect, a minute idle, 256 connections to an address. */
        public static final Options DEFAULT =
                new Options(null, Duration.ofSeconds(10), Duration.ofMinutes(1), 256, Clock.system());

        /** As these, with threads that others use as well. */
        public Options withLoops(EventLoops shared) {
            return new Options(shared, connectTimeout, idleTimeout, mostConnections, clock);
        }
    }
}
