// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.MemoryRegion;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * An HTTP and gRPC client with pooled connections, which forwards requests to other servers. Thread-safe; never
 * blocks. Failures are reported as UNAVAILABLE (no connection, with a {@link java.net.ConnectException} as the cause,
 * or a connection that failed before the response began) or DEADLINE_EXCEEDED. A response is relayed unchanged,
 * whatever its status.
 */
public interface UpstreamClient extends AutoCloseable {
    /**
     * Forwards an exchange and streams back status, headers and body of the response, without hop-by-hop headers. When
     * the client disconnects, the request is cancelled.
     *
     * @param path path and query of the upstream request
     */
    void forward(HttpExchange exchange, Address address, String path, Terms terms);

    /**
     * Forwards a gRPC call of any kind over HTTP/2 without TLS. Messages, status and status message are relayed as
     * they arrive.
     */
    GrpcMethod.GrpcListener forward(GrpcCall call, Address address, Terms terms);

    /**
     * Sends a request and collects the whole response, up to {@link Terms#mostBytes}.
     *
     * @param url {@code http://host:port/path?query}, or {@code https://…}
     * @return the response, whose body the caller closes
     */
    CompletionStage<Answer> send(String method, String url, List<Header> headers, byte[] body, Terms terms);

    @Override
    void close();

    /** The address of another server. Immutable. */
    record Address(String host, int port) {}

    /** Makes unary gRPC calls, to another server or within the process. Thread-safe; never blocks. */
    @FunctionalInterface
    interface UnaryCalls {
        /**
         * Calls a method.
         *
         * @param path the method, {@code /package.Service/Method}
         * @param metadata names in lower case
         * @param message the request; taken over on success and on failure
         * @return the response, which the caller owns; fails with the status code and message of the call. Cancelling
         *     the future cancels the call
         */
        CompletionStage<MemoryRegion> call(String path, List<Header> metadata, MemoryRegion message);
    }

    /** A header. Immutable. */
    record Header(String name, String value) {}

    /**
     * Options of a forwarded request. Immutable.
     *
     * @param timeout the longest time until the response is complete; zero for no limit
     * @param mostBytes the largest response that is collected
     * @param added headers to set; they replace the client's headers of the same name
     */
    record Terms(Duration timeout, long mostBytes, List<Header> added) {
        /** One minute, 64 MiB, no headers. */
        public static final Terms DEFAULT = new Terms(Duration.ofMinutes(1), 64L << 20, List.of());
    }

    /**
     * A complete response. The holder closes the body.
     *
     * @param status the HTTP status
     * @param headers in the order of arrival, names in lower case
     * @param body the body
     */
    record Answer(int status, List<Header> headers, MemoryRegion body) {}
}
