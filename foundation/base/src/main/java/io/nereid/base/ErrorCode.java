// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

/**
 * The canonical error codes of {@code google.rpc.Code}. The ordinal of a constant equals its number in the gRPC
 * protocol, so the order must not change. Immutable.
 *
 * <p>When to use which: {@link #INVALID_ARGUMENT} when the request is wrong whatever the server's state;
 * {@link #FAILED_PRECONDITION} when the server's state must be changed first; {@link #UNAVAILABLE} when the same call
 * may succeed on retry; {@link #RESOURCE_EXHAUSTED} when a limit or budget is used up; {@link #INTERNAL} for a bug of
 * the server.
 */
public enum ErrorCode {
    OK,
    CANCELLED,
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    ABORTED,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    DATA_LOSS,
    UNAUTHENTICATED;

    /** The number of this code in the gRPC protocol ({@code grpc-status}). */
    public int number() {
        return ordinal();
    }
}
