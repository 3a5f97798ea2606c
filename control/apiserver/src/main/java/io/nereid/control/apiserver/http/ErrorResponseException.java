// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.http;

/** Thrown to end a request with a prepared error response. Immutable. */
public final class ErrorResponseException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient ApiResponse response;

    public ErrorResponseException(ApiResponse response) {
        super(response.body().path("message").asText(), null, false, false);
        this.response = response;
    }

    /** The error for a body in an unknown format (415). */
    public static ErrorResponseException unsupportedMediaType(String type, String accepted) {
        return new ErrorResponseException(ApiResponse.failure(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: " + accepted
                        + " (found " + type + ")"));
    }

    /** The response. */
    public ApiResponse response() {
        return response;
    }
}
