// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import io.nereid.client.options.Attempt;
import io.nereid.client.options.RequestInterceptor;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapSetter;

/** Sends the context of the thread that calls, in the headers that OpenTelemetry is set up for. Thread-safe. */
final class TracePropagation implements RequestInterceptor {
    private static final TextMapSetter<Attempt> HEADERS = (attempt, name, value) -> {
        if (attempt != null) {
            attempt.header(name, value);
        }
    };

    private final OpenTelemetry openTelemetry;

    TracePropagation(OpenTelemetry openTelemetry) {
        this.openTelemetry = openTelemetry;
    }

    @Override
    public void before(Attempt attempt) {
        // Only the first attempt begins on the thread that calls.
        Context context = Context.current();
        if (attempt.attribute(this) instanceof Context first) {
            context = first;
        } else {
            attempt.attribute(this, context);
        }
        openTelemetry.getPropagators().getTextMapPropagator().inject(context, attempt, HEADERS);
    }
}
