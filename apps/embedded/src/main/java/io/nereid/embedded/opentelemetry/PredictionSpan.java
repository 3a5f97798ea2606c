// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.opentelemetry;

import io.nereid.base.Clock;
import io.nereid.observe.RequestTrace;
import io.nereid.tensor.Tensor;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The span of a prediction, or of a step of an ensemble. Thread-safe. */
final class PredictionSpan implements RequestTrace {
    private final Tracer tracer;
    private final Context parent;
    private final Span span;
    private final Clock clock;

    /** Added to a time of the clock to get nanoseconds since 1970. */
    private final long offset;

    PredictionSpan(Tracer tracer, Context parent, String model, long offset, Clock clock) {
        this.tracer = tracer;
        this.parent = parent;
        this.offset = offset;
        this.clock = clock;
        this.span = tracer.spanBuilder("predict " + model)
                .setParent(parent)
                .setStartTimestamp(clock.nanos() + offset, TimeUnit.NANOSECONDS)
                .setAttribute("nereid.model.name", model)
                .startSpan();
    }

    @Override
    public void event(Event event, long nanos) {
        span.addEvent(event.name(), nanos + offset, TimeUnit.NANOSECONDS);
    }

    @Override
    public void attribute(String name, String value) {
        span.setAttribute(name, value);
    }

    @Override
    public boolean includesTensors() {
        return false;
    }

    @Override
    public void tensors(String activity, List<Tensor> tensors) {}

    @Override
    public void model(String name, long version, String requestId) {
        span.setAttribute("nereid.model.version", version);
        if (!requestId.isEmpty()) {
            span.setAttribute("nereid.request.id", requestId);
        }
    }

    @Override
    public RequestTrace child(String model) {
        return new PredictionSpan(tracer, parent.with(span), model, offset, clock);
    }

    @Override
    public String traceId() {
        return span.getSpanContext().getTraceId();
    }

    @Override
    public String traceparent() {
        SpanContext c = span.getSpanContext();
        return "00-" + c.getTraceId() + "-" + c.getSpanId() + "-"
                + c.getTraceFlags().asHex();
    }

    @Override
    public void end() {
        span.end(clock.nanos() + offset, TimeUnit.NANOSECONDS);
    }
}
