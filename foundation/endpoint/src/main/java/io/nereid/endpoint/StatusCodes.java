// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.endpoint;

import io.nereid.base.Code;

/** The one table from canonical codes to HTTP statuses; a codec overrides rows where its clients depend on it. */
public final class StatusCodes {
    private StatusCodes() {}

    /** The HTTP status of a code. */
    public static int http(Code code) {
        return switch (code) {
            case OK -> 200;
            case INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE -> 400;
            case UNAUTHENTICATED -> 401;
            case PERMISSION_DENIED -> 403;
            case NOT_FOUND -> 404;
            case ALREADY_EXISTS, ABORTED -> 409;
            case RESOURCE_EXHAUSTED -> 429;
            case CANCELLED -> 499;
            case UNKNOWN, INTERNAL, DATA_LOSS -> 500;
            case UNIMPLEMENTED -> 501;
            case UNAVAILABLE -> 503;
            case DEADLINE_EXCEEDED -> 504;
        };
    }
}
