// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A call that failed: an error of the server, a connection that failed, a deadline that passed. Immutable.
 *
 * <pre>{@code
 * try {
 *     client.infer(request);
 * } catch (InferenceException e) {
 *     if (e.code() == InferenceException.Code.NOT_FOUND) { … }
 * }
 * }</pre>
 */
public final class InferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What kind of failure: the codes of gRPC, to which HTTP statuses are mapped. */
    public enum Code {
        /** The call was cancelled by this side, or the client is closed. */
        CANCELLED,
        UNKNOWN,
        /** The server refuses the request: a wrong shape, type, name or body. HTTP 400, 413, 415, 422. */
        INVALID_ARGUMENT,
        /** No response in time. HTTP 408, 504. */
        DEADLINE_EXCEEDED,
        /** No such model, version or route. HTTP 404. */
        NOT_FOUND,
        ALREADY_EXISTS,
        /** The caller may not do it. HTTP 403. */
        PERMISSION_DENIED,
        /** The server has no memory, queue or quota for it. HTTP 429. */
        RESOURCE_EXHAUSTED,
        FAILED_PRECONDITION,
        /** Another change is in progress. HTTP 409. */
        ABORTED,
        OUT_OF_RANGE,
        /** The server, or the protocol, does not have the operation. HTTP 405, 501. */
        UNIMPLEMENTED,
        /** A failure of the server or of the model. Other HTTP statuses from 500 on. */
        INTERNAL,
        /** No connection, or a server or model that is not available now. HTTP 502, 503. */
        UNAVAILABLE,
        DATA_LOSS,
        /** No credentials, or wrong ones. HTTP 401. */
        UNAUTHENTICATED
    }

    private final Code code;
    private final int httpStatus;
    private final boolean connectionFailure;
    private final boolean transientFailure;
    private final int attempts;
    private final transient @Nullable Duration retryAfter;

    private InferenceException(
            Code code,
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
    public static InferenceException of(Code code, String message, @Nullable Throwable cause) {
        return new InferenceException(code, message, cause, 0, false, false, 1, null);
    }

    /** A failure that another attempt would not change. */
    public static InferenceException of(Code code, String message) {
        return of(code, message, null);
    }

    /** A connection that could not be made, or that was lost; {@code again} when no response had begun. */
    public static InferenceException connection(String message, Throwable cause, boolean again) {
        return new InferenceException(Code.UNAVAILABLE, message, cause, 0, true, again, 1, null);
    }

    /** An error of a server over HTTP. */
    public static InferenceException http(int status, String message, @Nullable Duration retryAfter) {
        Code code = codeOf(status);
        return new InferenceException(code, message, null, status, false, isTransient(code, retryAfter), 1, retryAfter);
    }

    /** An error of a server over gRPC. */
    public static InferenceException grpc(
            Code code, String message, @Nullable Throwable cause, @Nullable Duration retryAfter) {
        return new InferenceException(code, message, cause, 0, false, isTransient(code, retryAfter), 1, retryAfter);
    }

    private static boolean isTransient(Code code, @Nullable Duration retryAfter) {
        return code == Code.UNAVAILABLE || (code == Code.RESOURCE_EXHAUSTED && retryAfter != null);
    }

    /** The code of an HTTP status. */
    public static Code codeOf(int status) {
        return switch (status) {
            case 401 -> Code.UNAUTHENTICATED;
            case 403 -> Code.PERMISSION_DENIED;
            case 404 -> Code.NOT_FOUND;
            case 405, 501 -> Code.UNIMPLEMENTED;
            case 408, 504 -> Code.DEADLINE_EXCEEDED;
            case 409 -> Code.ABORTED;
            case 429 -> Code.RESOURCE_EXHAUSTED;
            case 499 -> Code.CANCELLED;
            case 502, 503 -> Code.UNAVAILABLE;
            default -> status >= 500 ? Code.INTERNAL : status >= 400 ? Code.INVALID_ARGUMENT : Code.UNKNOWN;
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

    public Code code() {
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
