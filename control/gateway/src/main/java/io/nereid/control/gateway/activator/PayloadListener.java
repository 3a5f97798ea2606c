// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.UpstreamClient;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Receives the requests and responses of a revision, for the payload logger. Implementations are thread-safe, never
 * block and throw nothing. {@link #begin} decides for each request, so that nothing is copied for requests that are not
 * logged.
 */
@FunctionalInterface
public interface PayloadListener {
    /**
     * Called when a request is about to be processed.
     *
     * @return receives the request's bodies; null to ignore the request
     */
    @Nullable Recorder begin(Head head);

    /** The head of a request. Valid during {@link #begin} only. */
    interface Head {
        /** {@code http} or {@code grpc}. */
        String transport();

        /** The verb; {@code POST} for gRPC. */
        String method();

        /** The path that the revision sees. */
        String path();

        /** The first value of a header or metadata entry, by lower-case name, or null. */
        @Nullable String header(String lowerCaseName);

        /** All headers, with names in lower case. */
        List<UpstreamClient.Header> headers();
    }

    /**
     * Receives the bodies of one request. Called by one thread at a time, {@link #end} last and once. The ownership of
     * each body passes to the listener.
     */
    interface Recorder {
        /**
         * Receives the body of the request, or one message of it. It shares the request's memory: copy what is kept for
         * long.
         */
        void request(String contentType, MemoryRegion body);

        /** Receives a part of the response: a whole body, a piece of a stream, or a message. */
        void response(String contentType, MemoryRegion body);

        /**
         * Called when the response is complete.
         *
         * @param status of HTTP; 0 for gRPC, and when the client went away before there was one
         * @param code of gRPC; 0 for HTTP
         */
        void end(int status, int code);
    }
}
