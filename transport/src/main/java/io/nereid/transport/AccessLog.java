// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import java.net.SocketAddress;
import org.jspecify.annotations.Nullable;

/** Hears of every finished exchange and call. Called on event loops, must not block; implementations are thread-safe. */
@FunctionalInterface
public interface AccessLog {
    /** One exchange or call has ended. */
    void finished(Entry entry);

    /**
     * What is told about it. Immutable.
     *
     * @param protocol {@code HTTP/1.1}, {@code HTTP/2} or {@code gRPC}
     * @param method the verb
     * @param path the path as sent, without the query
     * @param status the HTTP status; the number of the gRPC code for gRPC
     * @param bytesIn bytes of body or messages received, before inflation
     * @param bytesOut bytes of body or messages sent, before compression
     * @param nanos from the arrival of the head to the reply
     * @param remote where the client is
     * @param requestId the client's {@code x-request-id}, if it sent one
     * @param peer the subject of the client's certificate, if it has shown one that is good
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
