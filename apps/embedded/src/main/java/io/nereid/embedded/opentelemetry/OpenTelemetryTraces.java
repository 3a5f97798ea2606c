// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.opentelemetry;

import io.nereid.base.Clock;
import io.nereid.embedded.PredictionTraces;
import io.nereid.observe.RequestTrace;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Makes a span for each prediction, below the span of the thread that asks, with the server's events as events of the span:
 * {@code QUEUE_START}, {@code COMPUTE_START} and so on. Steps of an ensemble are spans below it. Thread-safe.
 *
 * <pre>{@code
 * Nereid.builder().repository(models).traces(new OpenTelemetryTraces(openTelemetry)).build();
 * }</pre>
 */
public final class OpenTelemetryTraces implements PredictionTraces {
    private final Tracer tracer;
    private final Clock clock = Clock.system();

    /** Uses a tracer named {@code io.nereid.embedded}. */
    public OpenTelemetryTraces(OpenTelemetry openTelemetry) {
        this.tracer = openTelemetry.getTracer("io.nereid.embedded");
    }

    @Override
    public @Nullable RequestTrace start(String model) {
        long offset = TimeUnit.MILLISECONDS.toNanos(clock.millis()) - clock.nanos();
        return new PredictionSpan(tracer, Context.current(), model, offset, clock);
    }
}
