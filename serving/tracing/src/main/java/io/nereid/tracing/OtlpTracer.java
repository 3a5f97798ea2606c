// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Creates spans of requests and exports them to an OpenTelemetry collector over OTLP/HTTP. Thread-safe; spans are sent
 * by a thread of the OpenTelemetry SDK.
 */
final class OtlpTracer {
    private static final String DEFAULT_URL = "http://localhost:4318/v1/traces";
    /** {@code 00-<32 hex digits>-<16>-<2>}, of W3C's Trace Context. */
    private static final int TRACEPARENT_LENGTH = 55;

    private final SdkTracerProvider provider;
    private final Tracer tracer;
    private final Clock clock;
    private final AtomicLong ids = new AtomicLong();

    OtlpTracer(TraceOptions options, Clock clock) {
        this.clock = clock;
        Map<String, String> settings = options.modeSettings();
        AttributesBuilder attributes = Attributes.builder().put("service.name", "nereid");
        options.resource().forEach(attributes::put);
        String url = settings.getOrDefault("url", DEFAULT_URL);
        OtlpHttpSpanExporter exporter;
        try {
            exporter = OtlpHttpSpanExporter.builder().setEndpoint(url).build();
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument(
                    "trace setting url '" + url + "' is not the address of a collector", "for example " + DEFAULT_URL);
        }
        this.provider = SdkTracerProvider.builder()
                .setResource(Resource.getDefault().merge(Resource.create(attributes.build())))
                .addSpanProcessor(BatchSpanProcessor.builder(exporter)
                        .setMaxQueueSize(number(settings, "bsp_max_queue_size", 2048))
                        .setScheduleDelay(Duration.ofMillis(number(settings, "bsp_schedule_delay", 5000)))
                        .setMaxExportBatchSize(number(settings, "bsp_max_export_batch_size", 512))
                        .build())
                .build();
        this.tracer = provider.get("io.nereid");
    }

    private static int number(Map<String, String> settings, String name, int otherwise) {
        String text = settings.get(name);
        try {
            int n = text == null ? otherwise : Integer.parseInt(text);
            if (n > 0) {
                return n;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw ServingException.invalidArgument(
                "trace setting " + name + " is '" + text + "' (expected: a whole number from 1)");
    }

    /** Returns whether the caller that sent this header has sampled its trace. */
    static boolean sampled(@Nullable String traceparent) {
        return traceparent != null && remote(traceparent).isSampled();
    }

    private static SpanContext remote(String traceparent) {
        String[] parts = traceparent.strip().split("-");
        if (traceparent.strip().length() < TRACEPARENT_LENGTH
                || parts.length < 4
                || parts[3].length() < 2
                || !parts[3].substring(0, 2).matches("[0-9a-f]{2}")) {
            return SpanContext.getInvalid();
        }
        return SpanContext.createFromRemoteParent(
                parts[1], parts[2], TraceFlags.fromHex(parts[3], 0), TraceState.getDefault());
    }

    /** Starts the span of a request, as a child of the caller's span if there is one. */
    SpanTrace begin(String model, @Nullable String traceparent, boolean tensors) {
        Context parent = traceparent == null ? Context.root() : Context.root().with(Span.wrap(remote(traceparent)));
        long offset = TimeUnit.MILLISECONDS.toNanos(clock.millis()) - clock.nanos();
        Span root = tracer.spanBuilder("InferRequest").setParent(parent).startSpan();
        return new SpanTrace(this, root, null, model, tensors, offset);
    }

    Tracer tracer() {
        return tracer;
    }

    Clock clock() {
        return clock;
    }

    long nextId() {
        return ids.incrementAndGet();
    }

    void close() {
        provider.shutdown().join(10, TimeUnit.SECONDS);
    }
}
