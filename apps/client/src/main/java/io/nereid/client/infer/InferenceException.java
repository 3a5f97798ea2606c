// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import io.nereid.base.ErrorCode;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A call that failed: an error of the server, a connection that failed, a deadline that passed. Immutable.
 *
 * <pre>{@code
 * try {
 *     client.infer(request);
 * } catch (InferenceException e) {
 *     if (e.code() == ErrorCode.NOT_FOUND) { … }
 * }
 * }</pre>
 */
public final class InferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final ErrorCode code;
    private final int httpStatus;
    private final boolean connectionFailure;
    private final boolean transientFailure;
    private final int attempts;
    private final transient @Nullable Duration retryAfter;

    private InferenceException(
            ErrorCode code,
            String message,
            @Nullable Throwable cause,
            int httpStatus,
            boolean connectionFailure,
            boolean transientFailure,
            int attempts,
            @Nullable Duration retryAfter) {
        super(message, cause);
        this.code = code;
        this.httpStatus = httpStatus;
        this.connectionFailure = connectionFailure;
        this.transientFailure = transientFailure;
        this.attempts = attempts;
        this.retryAfter = retryAfter;
    }

    /** A failure that another attempt would not change. */
    public static InferenceException of(ErrorCode code, String message, @Nullable Throwable cause) {
        return new InferenceException(code, message, cause, 0, false, false, 1, null);
    }

    /** A failure that another attempt would not change. */
    public static InferenceException of(ErrorCode code, String message) {
        return of(code, message, null);
    }

    /** A connection that could not be made, or that was lost; {@code again} when no response had begun. */
    public static InferenceException connection(String message, Throwable cause, boolean again) {
        return new InferenceException(ErrorCode.UNAVAILABLE, message, cause, 0, true, again, 1, null);
    }

    /** An error of a server over HTTP. */
    public static InferenceException http(int status, String message, @Nullable Duration retryAfter) {
        ErrorCode code = codeOf(status);
        return new InferenceException(code, message, null, status, false, isTransient(code, retryAfter), 1, retryAfter);
    }

    /** An error of a server over gRPC. */
    public static InferenceException grpc(
            ErrorCode code, String message, @Nullable Throwable cause, @Nullable Duration retryAfter) {
        return new InferenceException(code, message, cause, 0, false, isTransient(code, retryAfter), 1, retryAfter);
    }

    private static boolean isTransient(ErrorCode code, @Nullable Duration retryAfter) {
        return code == ErrorCode.UNAVAILABLE || (code == ErrorCode.RESOURCE_EXHAUSTED && retryAfter != null);
    }

    /** The code of an HTTP status. */
    public static ErrorCode codeOf(int status) {
        return switch (status) {
            case 401 -> ErrorCode.UNAUTHENTICATED;
            case 403 -> ErrorCode.PERMISSION_DENIED;
            case 404 -> ErrorCode.NOT_FOUND;
            case 405, 501 -> ErrorCode.UNIMPLEMENTED;
            case 408, 504 -> ErrorCode.DEADLINE_EXCEEDED;
            case 409 -> ErrorCode.ABORTED;
            case 429 -> ErrorCode.RESOURCE_EXHAUSTED;
            case 499 -> ErrorCode.CANCELLED;
            case 502, 503 -> ErrorCode.UNAVAILABLE;
            default ->
                status >= 500 ? ErrorCode.INTERNAL : status >= 400 ? ErrorCode.INVALID_ARGUMENT : ErrorCode.UNKNOWN;
        };
    }

    /** The same failure after a number of attempts; its cause is this exception. */
    public InferenceException after(int number) {
        String text = number > 1 ? getMessage() + " (after " + number + " attempts)" : getMessage();
        return new InferenceException(
                code,
                text == null ? code.name() : text,
                this,
                httpStatus,
                connectionFailure,
                transientFailure,
                number,
                retryAfter);
    }

    /** The same failure with the stack of the current thread; its cause is this exception. */
    public InferenceException thrownHere() {
        String text = getMessage();
        return new InferenceException(
                code,
                text == null ? code.name() : text,
                this,
                httpStatus,
                connectionFailure,
                transientFailure,
                attempts,
                retryAfter);
    }

    public ErrorCode code() {
        return code;
    }

    /** The status of the HTTP response; 0 over gRPC and without a response. */
    public int httpStatus() {
        return httpStatus;
    }

    /** Whether there was no complete response because no connection was made or it was lost. */
    public boolean isConnectionFailure() {
        return connectionFailure;
    }

    /** Whether the same request may succeed later: the server was not available, or asks to wait; and no response had begun. */
    public boolean isTransient() {
        return transientFailure;
    }

    /** How often the request was sent, or tried to be sent; more than 1 when it was retried. */
    public int attempts() {
        return attempts;
    }

    /** How long the server asks to wait; null when it does not say. */
    public @Nullable Duration retryAfter() {
        return retryAfter;
    }
}
