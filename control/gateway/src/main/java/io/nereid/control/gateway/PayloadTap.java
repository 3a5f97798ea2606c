// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.UpstreamClient;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Listens to the requests and answers of a revision. Implementations are thread-safe, never block and throw nothing; they
 * are asked first, so that nothing is kept of what nobody wants.
 */
@FunctionalInterface
public interface PayloadTap {
    /**
     * A request is about to be answered.
     *
     * @return who hears of it, or null for nobody
     */
    @Nullable
    Tapped begin(Head head);

    /** The beginning of a request. Valid during {@link #begin} only. */
    interface Head {
        /** {@code http} or {@code grpc}. */
        String transport();

        /** The verb; {@code POST} for gRPC. */
        String method();

        /** The path that the revision sees. */
        String path();

        /** The first value of a header or metadata entry, by lower-case name, or null. */
        @Nullable
        String header(String lowerCaseName);

        /** All of them, names in lower case. */
        List<UpstreamClient.Header> headers();
    }

    /** Hears of one request; one call at a time, the end last and once. Each body handed over belongs to the listener. */
    interface Tapped {
        /** The body of the request, or one message of it. Shares the request's memory: what is kept long should be copied. */
        void request(String contentType, MemoryRegion body);

        /** A piece of the answer: a whole body, a piece of a stream, or a message. */
        void response(String contentType, MemoryRegion body);

        /**
         * The answer is complete.
         *
         * @param status of HTTP; 0 for gRPC, and when the client went away before there was one
         * @param code of gRPC; 0 for HTTP
         */
        void end(int status, int code);
    }
}
