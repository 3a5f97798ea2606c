// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.options;

import io.nereid.client.infer.InferenceException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Sees each attempt of each call, and may add headers: for tracing, metrics, tokens that expire. Implementations are
 * thread-safe; they must not block for long.
 *
 * <p>The first attempt is announced on the thread that calls the client, so that the current span of a tracing library is
 * known there; later ones, and the ends of attempts, on a thread of the client.
 *
 * <pre>{@code
 * NereidClient client = NereidClient.builder("http://localhost:8080")
 *         .interceptor(RequestInterceptor.traceparent(() -> {
 *             SpanContext span = Span.current().getSpanContext();        // of the OpenTelemetry API
 *             return span.isValid() ? "00-" + span.getTraceId() + "-" + span.getSpanId() + "-" + span.getTraceFlags().asHex() : null;
 *         }))
 *         .build();
 * }</pre>
 */
@FunctionalInterface
public interface RequestInterceptor {
    /** Before an attempt is sent. An exception fails the call. */
    void before(Attempt attempt);

    /** After an attempt; {@code failure} is null when it succeeded. An exception is ignored. */
    default void after(Attempt attempt, @Nullable InferenceException failure) {}

    /** Sends W3C's {@code traceparent} when the supplier has one. */
    static RequestInterceptor traceparent(Supplier<@Nullable String> current) {
        return attempt -> {
            String value = current.get();
            if (value != null) {
                attempt.header("traceparent", value);
            }
        };
    }
}
