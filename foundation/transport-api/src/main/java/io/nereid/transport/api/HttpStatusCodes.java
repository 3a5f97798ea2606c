// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.ErrorCode;

/**
 * Maps canonical error codes to HTTP statuses and back. A protocol overrides single mappings where its clients depend
 * on others. Stateless.
 */
public final class HttpStatusCodes {
    private HttpStatusCodes() {}

    /** Returns the HTTP status of a code. */
    public static int http(ErrorCode code) {
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

    /** Returns the code for an HTTP error status. */
    public static ErrorCode code(int status) {
        return switch (status) {
            case 400, 411, 415, 422 -> ErrorCode.INVALID_ARGUMENT;
            case 401, 407 -> ErrorCode.UNAUTHENTICATED;
            case 403 -> ErrorCode.PERMISSION_DENIED;
            case 404, 410 -> ErrorCode.NOT_FOUND;
            case 405, 501 -> ErrorCode.UNIMPLEMENTED;
            case 408, 504 -> ErrorCode.DEADLINE_EXCEEDED;
            case 409 -> ErrorCode.ABORTED;
            case 413, 429, 507 -> ErrorCode.RESOURCE_EXHAUSTED;
            case 499 -> ErrorCode.CANCELLED;
            case 502, 503 -> ErrorCode.UNAVAILABLE;
            default ->
                status >= 500 ? ErrorCode.INTERNAL : status >= 400 ? ErrorCode.FAILED_PRECONDITION : ErrorCode.UNKNOWN;
        };
    }
}
