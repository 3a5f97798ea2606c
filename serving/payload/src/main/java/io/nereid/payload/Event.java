// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.time.Instant;

/**
 * A request's or an answer's body on its way out, as it was heard. Immutable; the data is not changed.
 *
 * @param id the same for a request and its answer
 * @param request whether it is a request's
 * @param index which message of a stream it is; 0 for the first and for HTTP
 * @param time when it was heard
 * @param contentType of the body; may be empty
 * @param data the body
 * @param metadata the selected headers as JSON; empty for none
 * @param status of HTTP or of gRPC, where it is known; else empty
 * @param grpc whether the status is of gRPC
 */
record Event(
        String id,
        boolean request,
        int index,
        Instant time,
        String contentType,
        byte[] data,
        String metadata,
        String status,
        boolean grpc) {
    /** {@code request} or {@code response}. */
    String kind() {
        return request ? "request" : "response";
    }
}
