// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.MemoryRegion;
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
    void forward(HttpExchange exchange, Address address, String path, ForwardOptions terms);

    /**
     * Forwards a gRPC call of any kind over HTTP/2 without TLS. Messages, status and status message are relayed as
     * they arrive.
     */
    GrpcMethod.GrpcListener forward(GrpcCall call, Address address, ForwardOptions terms);

    /**
     * Sends a request and collects the whole response, up to {@link ForwardOptions#maxBytes}.
     *
     * @param url {@code http://host:port/path?query}, or {@code https://…}
     * @return the response, whose body the caller closes
     */
    CompletionStage<UpstreamResponse> send(
            String method, String url, List<Header> headers, byte[] body, ForwardOptions terms);

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
}
