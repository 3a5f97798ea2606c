// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The exception of the server. The code decides the gRPC status and the HTTP status; the message describes the error,
 * the offending value and what was expected; the remedy names the next step. Immutable. Exceptions about a client's
 * input or about load carry no stack trace, because they are frequent. A long message or remedy is shortened in its
 * middle, as it may quote a value of a client that is as long as the request.
 *
 * <pre>{@code
 * throw ServingException.of(
 *         ErrorCode.NOT_FOUND, "model 'irs' is not known", "did you mean 'iris'?");
 * }</pre>
 */
public final class ServingException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Longer texts are shortened; the reports of configuration files and the tracebacks of models are not this long. */
    private static final int LONGEST = 16 << 10;

    private static final int KEPT_AT_END = 2 << 10;

    private final ErrorCode code;
    private final @Nullable String remedy;
    private final @Nullable Duration retryAfter;
    private final boolean modelError;

    private ServingException(
            ErrorCode code,
            String message,
            @Nullable String remedy,
            @Nullable Duration retryAfter,
            @Nullable Throwable cause,
            boolean stackTrace,
            boolean modelError) {
        super(shortened(Objects.requireNonNull(message, "message")), cause, false, stackTrace);
        this.code = Objects.requireNonNull(code, "code");
        this.remedy = remedy == null ? null : shortened(remedy);
        this.retryAfter = retryAfter;
        this.modelError = modelError;
    }

    private static String shortened(String text) {
        int length = text.length();
        if (length <= LONGEST) {
            return text;
        }
        int head = LONGEST - KEPT_AT_END;
        return text.substring(0, head) + " … (" + (length - LONGEST) + " characters left out) … "
                + text.substring(length - KEPT_AT_END);
    }

    /** An error about a client's or an operator's input, or about load; without a stack trace. */
    public static ServingException of(ErrorCode code, String message) {
        return new ServingException(code, message, null, null, null, false, false);
    }

    /**
     * An error that a model answers a request with, in its own words, which clients get unchanged whatever the code is;
     * other errors of the code INTERNAL are reported with an id that leads to the log.
     */
    public static ServingException ofModel(ErrorCode code, String message) {
        return new ServingException(code, message, null, null, null, false, true);
    }

    /** As {@link #of(ErrorCode, String)}, with the next step to take. */
    public static ServingException of(ErrorCode code, String message, @Nullable String remedy) {
        return new ServingException(code, message, remedy, null, null, false, false);
    }

    /**
     * An error about load or a quota, after which the same call may succeed once some time has passed. HTTP clients get
     * the time as {@code retry-after}, gRPC clients as {@code grpc-retry-pushback-ms}.
     */
    public static ServingException retryable(
            ErrorCode code, String message, @Nullable String remedy, Duration retryAfter) {
        return new ServingException(code, message, remedy, retryAfter, null, false, false);
    }

    /** An error caused by another exception, which is kept as the cause for the log. */
    public static ServingException wrap(ErrorCode code, String message, Throwable cause) {
        return new ServingException(code, message, null, null, cause, true, false);
    }

    /** As {@link #wrap(ErrorCode, String, Throwable)}, with the next step to take. */
    public static ServingException wrap(ErrorCode code, String message, @Nullable String remedy, Throwable cause) {
        return new ServingException(code, message, remedy, null, cause, true, false);
    }

    /** The client's request is wrong. */
    public static ServingException invalidArgument(String message) {
        return of(ErrorCode.INVALID_ARGUMENT, message);
    }

    /** The client's request is wrong, with the next step to take. */
    public static ServingException invalidArgument(String message, @Nullable String remedy) {
        return of(ErrorCode.INVALID_ARGUMENT, message, remedy);
    }

    /** A bug of the server, or a failure that the caller cannot fix. */
    public static ServingException internal(String message, Throwable cause) {
        return wrap(ErrorCode.INTERNAL, message, cause);
    }

    /**
     * Converts any throwable: returns a ServingException as it is, makes RESOURCE_EXHAUSTED of a failed allocation, and
     * wraps others with {@link ErrorCode#INTERNAL}. Those that nothing expected are counted and logged with their stack
     * ({@link UncaughtErrors}).
     */
    public static ServingException from(Throwable t) {
        if (t instanceof ServingException e) {
            return e;
        }
        if (t instanceof OutOfMemoryError) {
            return wrap(ErrorCode.RESOURCE_EXHAUSTED, "the server has no memory for this request", "retry later", t);
        }
        if ((t instanceof RuntimeException || t instanceof Error)
                && !(t instanceof CancellationException)
                && !(t instanceof CompletionException)
                && !(t instanceof RejectedExecutionException)) {
            UncaughtErrors.report(t);
        }
        return internal("internal error: " + t.getClass().getSimpleName(), t);
    }

    /** The canonical code. */
    public ErrorCode code() {
        return code;
    }

    /** The next step for the reader of the message; null when the exception has none. */
    public @Nullable String remedy() {
        return remedy;
    }

    /** The time after which the same call may succeed; null when it is not known. */
    public @Nullable Duration retryAfter() {
        return retryAfter;
    }

    /** Whether a model answered a request with this error; see {@link #ofModel}. */
    public boolean isModelError() {
        return modelError;
    }

    /** The message. The super type allows null, this class does not. */
    @Override
    public String getMessage() {
        return Objects.requireNonNull(super.getMessage());
    }

    /** Message and remedy in one text, as clients and the command line show it. */
    public String describe() {
        return remedy == null ? getMessage() : getMessage() + " (" + remedy + ")";
    }
}
