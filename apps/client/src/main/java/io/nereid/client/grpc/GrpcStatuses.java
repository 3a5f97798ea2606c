// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import io.grpc.Metadata;
import io.grpc.Status;
import io.nereid.base.ServingException;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.InferenceException.Code;
import java.io.IOException;
import java.time.Duration;

/** The exceptions for statuses of gRPC. Stateless. */
final class GrpcStatuses {
    private static final Metadata.Key<String> PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

    private GrpcStatuses() {}

    static InferenceException failure(Status status, Metadata trailers) {
        String description = status.getDescription();
        Throwable cause = status.getCause();
        String message =
                description == null || description.isEmpty() ? status.getCode().name() : description;
        if (status.getCode() == Status.Code.UNAVAILABLE && cause instanceof IOException) {
            return InferenceException.connection(message + ": " + cause.getMessage(), cause, !isTls(cause));
        }
        String pushback = trailers.get(PUSHBACK);
        Duration wait =
                pushback != null && pushback.matches("\\d{1,9}") ? Duration.ofMillis(Long.parseLong(pushback)) : null;
        return InferenceException.grpc(Code.valueOf(status.getCode().name()), message, cause, wait);
    }

    private static boolean isTls(Throwable cause) {
        for (Throwable t = cause; t != null; t = t.getCause()) {
            if (t instanceof javax.net.ssl.SSLException) {
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
                    Code.INTERNAL, "the response of the server cannot be read: " + e.getMessage(), e);
        }
        throw e;
    }
}
