// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.audit;

import io.nereid.base.access.Operation;
import org.jspecify.annotations.Nullable;

/**
 * One line of the audit log. Immutable.
 *
 * @param timeMillis when the request ended, in milliseconds since 1970
 * @param caller the name of the caller
 * @param operation what the request does
 * @param model the model, or the namespace of the control plane; null when it is about none
 * @param method the HTTP method; {@code POST} for gRPC
 * @param path the path without the query, or the gRPC method
 * @param remote the client's address
 * @param requestId the client's {@code x-request-id}; null when it sent none
 * @param outcome what became of it
 * @param status the HTTP status, or the number of the gRPC status
 */
public record AuditEntry(
        long timeMillis,
        String caller,
        Operation operation,
        @Nullable String model,
        String method,
        String path,
        String remote,
        @Nullable String requestId,
        Outcome outcome,
        int status) {
    /** What became of a request. */
    public enum Outcome {
        /** It was served. */
        OK,
        /** It was refused because of who made it. */
        DENIED,
        /** It failed for another reason. */
        FAILED
    }
}
