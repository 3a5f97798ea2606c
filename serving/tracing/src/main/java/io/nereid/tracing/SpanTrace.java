// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.observe.RequestTrace;
import io.nereid.tensor.Tensor;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The trace of a request, or of one step of an ensemble, as OpenTelemetry spans: {@code InferRequest} for the request,
 * in it a span with the name of the model, and in that one {@code compute}. Thread-safe by its own lock.
 */
final class SpanTrace implements RequestTrace {
    private final OtlpTracer traces;
    private final @Nullable Span root;
    private final Span span;
    private final boolean tensors;
    /** Added to a time of the server's clock to get nanoseconds since 1970. */
    private final long offset;

    private final long id;

    @GuardedBy("this") private final Map<Event, Long> times = new EnumMap<>(Event.class);

    SpanTrace(
            OtlpTracer traces,
            @Nullable Span root,
            @Nullable SpanTrace parent,
            String model,
            boolean tensors,
            long offset) {
        this.traces = traces;
        this.root = root;
        this.tensors = tensors;
        this.offset = offset;
        this.id = traces.nextId();
        Span above = root != null ? root : parent != null ? parent.span : Span.getInvalid();
        this.span = traces.tracer()
                .spanBuilder(model)
                .setParent(Context.root().with(above))
                .startSpan();
        span.setAttribute("triton.trace_id", id);
        if (parent != null) {
            span.setAttribute("triton.trace_parent_id", parent.id);
        }
    }

    @Override
    public synchronized void event(Event event, long nanos) {
        times.put(event, nanos);
        boolean outer = root != null
                && (event.name().startsWith("HTTP_") || event.name().startsWith("GRPC_"));
        Span at = outer && root != null ? root : span;
        at.addEvent(event.name(), nanos + offset, TimeUnit.NANOSECONDS);
    }

    @Override
    public synchronized void attribute(String name, String value) {
        span.setAttribute(name, value);
    }

    @Override
    public boolean includesTensors() {
        return tensors;
    }

    @Override
    public void tensors(String activity, List<Tensor> given) {
        for (Tensor t : given) {
            Attributes attributes = Attributes.of(
                    AttributeKey.stringKey("name"),
                    t.name(),
                    AttributeKey.stringKey("dtype"),
                    t.dataType().toString(),
                    AttributeKey.stringKey("shape"),
                    TensorFormatter.shape(t),
                    AttributeKey.stringKey("data"),
                    TensorFormatter.values(t));
            span.addEvent(activity, attributes, traces.clock().nanos() + offset, TimeUnit.NANOSECONDS);
        }
    }

    @Override
    public void model(String name, long version, String requestId) {
        span.setAttribute("triton.model_name", name);
        span.setAttribute("triton.model_version", version);
        if (!requestId.isEmpty()) {
            span.setAttribute("triton.request_id", requestId);
        }
    }

    @Override
    public RequestTrace child(String model) {
        return new SpanTrace(traces, null, this, model, tensors, offset);
    }

    @Override
    public String traceId() {
        return span.getSpanContext().getTraceId();
    }

    @Override
    public @Nullable String traceparent() {
        SpanContext c = span.getSpanContext();
        return "00-" + c.getTraceId() + "-" + c.getSpanId() + "-"
                + c.getTraceFlags().asHex();
    }

    @Override
    public synchronized void end() {
        Long from = times.get(Event.COMPUTE_START);
        Long to = times.get(Event.COMPUTE_END);
        if (from != null && to != null) {
            traces.tracer()
                    .spanBuilder("compute")
                    .setParent(Context.root().with(span))
                    .setStartTimestamp(from + offset, TimeUnit.NANOSECONDS)
                    .startSpan()
                    .end(to + offset, TimeUnit.NANOSECONDS);
        }
        long now = traces.clock().nanos() + offset;
        span.end(now, TimeUnit.NANOSECONDS);
        if (root != null) {
            root.end(now, TimeUnit.NANOSECONDS);
        }
    }
}
