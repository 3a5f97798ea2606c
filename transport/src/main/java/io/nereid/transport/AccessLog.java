// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.access.Operation;
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
     * @param caller the name of the caller, as the access policy knows it
     * @param operation what the request does; null when there is no route for it
     * @param model the model that path or message name, as far as it was read for the decision on access; null for none
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
            @Nullable String peer,
            String caller,
            @Nullable Operation operation,
            @Nullable String model) {
        /** Whether the request has failed because of who made it. */
        public boolean denied() {
            return protocol.equals("gRPC")
                    ? status == ErrorCode.PERMISSION_DENIED.number() || status == ErrorCode.UNAUTHENTICATED.number()
                    : status == 401 || status == 403;
        }

        /** Whether the request was served. */
        public boolean succeeded() {
            return protocol.equals("gRPC") ? status == 0 : status < 400;
        }
    }
}
