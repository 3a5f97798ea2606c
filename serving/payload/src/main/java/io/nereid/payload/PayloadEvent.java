// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.time.Instant;

/**
 * A copy of the body of a request or response, waiting to be sent. Immutable as long as the data is not changed.
 *
 * @param id the same for a request and its response
 * @param request whether it is a request
 * @param index the index of the message in a stream; 0 for the first message and for HTTP
 * @param time when the body was received or sent
 * @param contentType the content type of the body; may be empty
 * @param data the body
 * @param metadata the selected headers as JSON; empty for none
 * @param status the status of HTTP or gRPC, where known; otherwise empty
 * @param grpc whether the status is a gRPC code
 */
record PayloadEvent(
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
