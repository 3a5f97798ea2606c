// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import io.grpc.Metadata;
import io.grpc.Status;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.client.infer.InferenceException;
import java.io.IOException;
import java.time.Duration;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** The exceptions for statuses of gRPC. Stateless. */
final class GrpcStatuses {
    private static final Metadata.Key<String> PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

    private static final Metadata.Key<String> CONTENT_TYPE =
            Metadata.Key.of("content-type", Metadata.ASCII_STRING_MARSHALLER);

    private GrpcStatuses() {}

    /** The exception for a status; {@code began} when headers or messages of the response have arrived. */
    static InferenceException failure(Status status, Metadata trailers, boolean began) {
        String description = status.getDescription();
        Throwable cause = status.getCause();
        String message =
                description == null || description.isEmpty() ? status.getCode().name() : description;
        if (status.getCode() == Status.Code.UNAVAILABLE && isLost(cause, trailers, began)) {
            String reason = cause == null || cause.getMessage() == null ? "" : ": " + cause.getMessage();
            return InferenceException.connection(
                    message + reason, cause != null ? cause : status.asException(), !began && !isTls(cause));
        }
        String pushback = trailers.get(PUSHBACK);
        Duration wait =
                pushback != null && pushback.matches("\\d{1,9}") ? Duration.ofMillis(Long.parseLong(pushback)) : null;
        return InferenceException.grpc(ErrorCode.valueOf(status.getCode().name()), message, cause, wait);
    }

    /** A status of the server itself comes with headers, or with trailers that have the content type of headers. */
    private static boolean isLost(@Nullable Throwable cause, Metadata trailers, boolean began) {
        return cause instanceof IOException || (!began && !trailers.containsKey(CONTENT_TYPE));
    }

    private static boolean isTls(@Nullable Throwable cause) {
        for (Throwable t = cause; t != null; t = t.getCause()) {
            if (t instanceof SSLException) {
                return true;
            }
        }
        return false;
    }

    /** The exception for a message that is not what the protocol says. */
    static InferenceException unreadable(RuntimeException e) {
        if (e instanceof InferenceException known) {
            return known;
        }
        if (e instanceof ServingException
                || e instanceof IllegalArgumentException
                || e instanceof ArithmeticException) {
            return InferenceException.of(
                    ErrorCode.INTERNAL, "the response of the server cannot be read: " + e.getMessage(), e);
        }
        throw e;
    }
}
