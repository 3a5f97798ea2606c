// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The one exception of the server. Its message says what went wrong, the offending value and what was expected; its
 * remedy says the next step. Immutable; frequent refusals carry no stack trace.
 */
public final class ServingException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final ErrorCode code;
    private final @Nullable String remedy;

    private ServingException(
            ErrorCode code, String message, @Nullable String remedy, @Nullable Throwable cause, boolean stackTrace) {
        super(Objects.requireNonNull(message, "message"), cause, false, stackTrace);
        this.code = Objects.requireNonNull(code, "code");
        this.remedy = remedy;
    }

    /** A refusal without a stack trace: it tells a client or an operator about their input or about load. */
    public static ServingException of(ErrorCode code, String message) {
        return new ServingException(code, message, null, null, false);
    }

    /** As {@link #of(ErrorCode, String)}, with the next step to take. */
    public static ServingException of(ErrorCode code, String message, @Nullable String remedy) {
        return new ServingException(code, message, remedy, null, false);
    }

    /** A failure caused by a foreign exception, kept as the cause for the log. */
    public static ServingException wrap(ErrorCode code, String message, Throwable cause) {
        return new ServingException(code, message, null, cause, true);
    }

    /** As {@link #wrap(ErrorCode, String, Throwable)}, with the next step to take. */
    public static ServingException wrap(ErrorCode code, String message, @Nullable String remedy, Throwable cause) {
        return new ServingException(code, message, remedy, cause, true);
    }

    /** The client's request is wrong. */
    public static ServingException invalidArgument(String message) {
        return of(ErrorCode.INVALID_ARGUMENT, message);
    }

    /** The client's request is wrong, with the next step to take. */
    public static ServingException invalidArgument(String message, @Nullable String remedy) {
        return of(ErrorCode.INVALID_ARGUMENT, message, remedy);
    }

    /** Our own bug, or a failure that nobody outside can mend. */
    public static ServingException internal(String message, Throwable cause) {
        return wrap(ErrorCode.INTERNAL, message, cause);
    }

    /** Any throwable as a ServingException: itself if it is one, else {@link ErrorCode#INTERNAL} around it. */
    public static ServingException from(Throwable t) {
        if (t instanceof ServingException e) {
            return e;
        }
        return internal("internal error: " + t.getClass().getSimpleName(), t);
    }

    /** The canonical code. */
    public ErrorCode code() {
        return code;
    }

    /** The next step for whoever reads the message, if there is one to give. */
    public @Nullable String remedy() {
        return remedy;
    }

    /** The message; a super type allows null, this class does not. */
    @Override
    public String getMessage() {
        return Objects.requireNonNull(super.getMessage());
    }

    /** Message and remedy in one text, as clients and tables show it. */
    public String describe() {
        return remedy == null ? getMessage() : getMessage() + " (" + remedy + ")";
    }
}
