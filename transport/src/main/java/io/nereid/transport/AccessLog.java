// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import java.net.SocketAddress;
import org.jspecify.annotations.Nullable;

/**
 * Receives an entry for every finished exchange and call. Called on event loops and on the threads that send responses,
 * so it must not block. Implementations are thread-safe.
 */
@FunctionalInterface
public interface AccessLog {
    /** Called once for each exchange or call, when it has ended. */
    void finished(Entry entry);

    /**
     * One line of the access log. Immutable.
     *
     * @param protocol {@code HTTP/1.1}, {@code HTTP/2} or {@code gRPC}
     * @param method the HTTP method
     * @param path the path as sent, without the query
     * @param status the HTTP status, 499 when the client disconnected first; for gRPC the number of the status code
     * @param bytesIn bytes of body or messages received, before inflation
     * @param bytesOut bytes of body or messages sent, before compression
     * @param nanos from the arrival of the request's head to the response
     * @param remote the client's address
     * @param requestId the client's {@code x-request-id}, if it sent one
     * @param peer the subject of the client's certificate, if it presented a valid one
     */
    record Entry(
            String protocol,
            String method,
            String path,
            int status,
            long bytesIn,
            long bytesOut,
            long nanos,
            SocketAddress remote,
            @Nullable String requestId,
            @Nullable String peer) {}
}
