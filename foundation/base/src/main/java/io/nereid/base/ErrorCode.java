// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

/**
 * The canonical error codes of google.rpc; ordinal positions equal the numbers on the gRPC wire. Immutable.
 *
 * <p>Which one: {@link #INVALID_ARGUMENT} the request is wrong whatever the server's state; {@link #FAILED_PRECONDITION}
 * the state must be fixed first; {@link #UNAVAILABLE} the same call may be retried; {@link #RESOURCE_EXHAUSTED} a limit
 * or a budget is used up; {@link #INTERNAL} our own bug.
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

    /** The number of this code on the gRPC wire ({@code grpc-status}). */
    public int number() {
        return ordinal();
    }
}
