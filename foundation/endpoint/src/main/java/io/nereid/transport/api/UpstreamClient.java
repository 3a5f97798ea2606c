// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.MemoryRegion;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * Sends requests on to other servers over connections that are kept. Thread-safe; never blocks. What goes wrong on the way is
 * told as UNAVAILABLE (no connection, which has a {@link java.net.ConnectException} as its cause, or broken before the answer
 * began) or DEADLINE_EXCEEDED; an answer, whatever its status, is
 * relayed unchanged.
 */
public interface UpstreamClient extends AutoCloseable {
    /**
     * Sends an exchange on and relays the answer as it comes, status, headers and body; hop-by-hop headers stay behind. The
     * client going away ends the request.
     *
     * @param path path and query to ask for
     */
    void forward(HttpExchange exchange, Address address, String path, Terms terms);

    /** Sends a gRPC call on, of any kind, over HTTP/2 without TLS; messages, status and text are relayed as they come. */
    GrpcMethod.GrpcListener forward(GrpcCall call, Address address, Terms terms);

    /**
     * Sends a request and gathers the whole answer, for at most {@link Terms#mostBytes}.
     *
     * @param url {@code http://host:port/path?query}, or {@code https://…}
     */
    CompletionStage<Answer> send(String method, String url, List<Header> headers, byte[] body, Terms terms);

    @Override
    void close();

    /** Where another server listens. Immutable. */
    record Address(String host, int port) {}

    /** Something that answers unary calls of gRPC, wherever it is. Thread-safe; never blocks. */
    @FunctionalInterface
    interface UnaryCalls {
        /**
         * Calls a method.
         *
         * @param path the method, {@code /package.Service/Method}
         * @param metadata names in lower case
         * @param message taken over, whatever happens
         * @return the answer, which belongs to whoever gets it; fails with the code and the text of the call. Cancelling its
         *     future ends the call
         */
        CompletionStage<MemoryRegion> call(String path, List<Header> metadata, MemoryRegion message);
    }

    /** One header. Immutable. */
    record Header(String name, String value) {}

    /**
     * How a request is sent on. Immutable.
     *
     * @param timeout most time until the answer is complete; zero for no limit
     * @param mostBytes the longest answer that is gathered
     * @param added headers to set, in the place of what the client sent under the same names
     */
    record Terms(Duration timeout, long mostBytes, List<Header> added) {
        /** A minute, 64 MiB, no headers. */
        public static final Terms DEFAULT = new Terms(Duration.ofMinutes(1), 64L << 20, List.of());
    }

    /**
     * A whole answer. Whoever gets it closes the body.
     *
     * @param headers in the order of arrival, names in lower case
     */
    record Answer(int status, List<Header> headers, MemoryRegion body) {}
}
