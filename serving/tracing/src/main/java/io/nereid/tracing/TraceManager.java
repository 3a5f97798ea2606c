// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Selects the requests to trace (Triton: {@code TraceManager}) by the settings of the server and of single models, and
 * writes their traces to files or exports them to OpenTelemetry. Thread-safe. While tracing is off, a request costs one
 * volatile read.
 *
 * <pre>{@code
 * TraceManager tracing = new TraceManager(TraceOptions.OFF, Clock.system());
 * tracing.update(null, Map.of("trace_level", List.of("TIMESTAMPS"), "trace_rate", List.of("100")));
 * RequestTrace trace = tracing.trace("resnet", null); // null for most requests
 * }</pre>
 */
public final class TraceManager implements AutoCloseable {
    private static final List<String> FILE_SETTINGS = List.of("file", "log-frequency");
    private static final List<String> OTLP_SETTINGS =
            List.of("url", "bsp_max_queue_size", "bsp_schedule_delay", "bsp_max_export_batch_size");

    private final TraceOptions options;
    private final TraceSettings initial;
    private final @Nullable TraceFile file;
    private final @Nullable OtlpTracer otlp;
    private final Map<String, TraceSampler> byModel = new ConcurrentHashMap<>();
    /** Settings of single models that differ from the server's; guarded by this. */
    @GuardedBy("this") private final Map<String, Map<String, List<String>>> own = new HashMap<>();

    private volatile TraceSampler server;
    /** Whether the settings of the server or of any model trace requests. */
    private volatile boolean on;

    /**
     * Creates a manager with initial settings.
     *
     * @throws ServingException INVALID_ARGUMENT for a setting that is unknown or has a wrong value
     */
    public TraceManager(TraceOptions options, Clock clock) {
        this.options = options;
        boolean triton = options.mode() == TraceOptions.Mode.TRITON;
        check("trace setting", options.settings().keySet(), List.of("level", "rate", "count"));
        check(
                "trace setting of mode " + options.mode().name().toLowerCase(Locale.ROOT),
                options.modeSettings().keySet(),
                triton ? FILE_SETTINGS : OTLP_SETTINGS);
        Map<String, List<String>> given = new HashMap<>();
        options.settings()
                .forEach((k, v) -> given.put("trace_" + k, k.equals("level") ? List.of(v.split(",")) : List.of(v)));
        String frequency = options.modeSettings().get("log-frequency");
        if (frequency != null) {
            given.put("log_frequency", List.of(frequency));
        }
        this.initial = TraceSettings.DEFAULT.with(given, TraceSettings.DEFAULT);
        this.server = new TraceSampler(initial);
        this.file = triton ? new TraceFile(options.modeSettings().getOrDefault("file", "")) : null;
        this.otlp = triton ? null : new OtlpTracer(options, clock);
        this.on = initial.on();
    }

    private static void check(String what, Iterable<String> given, List<String> known) {
        for (String name : given) {
            if (!known.contains(name)) {
                throw ServingException.invalidArgument(
                        "unknown " + what + " '" + name + "'",
                        NameSuggestions.didYouMean(name, known, "expected one of " + known));
            }
        }
    }

    /** Starts the trace of a request that has just arrived; null when the request is not sampled. */
    public @Nullable RequestTrace trace(String model, @Nullable String traceparent) {
        if (!on) {
            return null;
        }
        TraceSampler differently = byModel.isEmpty() ? null : byModel.get(model);
        TraceSampler sampler = differently == null ? server : differently;
        OtlpTracer spans = otlp;
        // A request that its caller has sampled is always traced, so that the distributed trace is complete.
        boolean forced = spans != null
                && OtlpTracer.sampled(traceparent)
                && sampler.settings().on();
        if (!forced && !sampler.sample()) {
            return null;
        }
        TraceSettings settings = sampler.settings();
        if (spans != null) {
            return spans.begin(model, traceparent, settings.tensors());
        }
        TraceFile traces = file;
        return traces == null ? null : new FileTrace(traces, settings, null, model);
    }

    /** Returns the trace settings of a model, or of the server if null, in the form that clients see. */
    public Map<String, List<String>> settings(@Nullable String model) {
        TraceSampler sampler = model == null ? server : byModel.getOrDefault(model, server);
        Map<String, List<String>> shown = new LinkedHashMap<>();
        if (file != null) {
            shown.put("trace_file", List.of(file.path()));
        }
        shown.putAll(sampler.shown());
        shown.put("trace_mode", List.of(options.mode().name().toLowerCase(Locale.ROOT)));
        if (otlp != null) {
            shown.remove("log_frequency");
            options.modeSettings().forEach((k, v) -> shown.put(k, List.of(v)));
            List<String> resource = new ArrayList<>();
            options.resource().forEach((k, v) -> resource.add(k + "=" + v));
            shown.put("resource", resource);
        }
        return shown;
    }

    /**
     * Changes the trace settings of a model, or of the server if null. A null value resets a setting: for a model to
     * the server's value, for the server to the initial value.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown setting or an invalid value, UNIMPLEMENTED for a
     *     setting that cannot be changed
     */
    public synchronized Map<String, List<String>> update(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> changes) {
        if (otlp != null && !changes.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "trace settings can not be updated while traces go to OpenTelemetry",
                    "start the server with --trace-config mode=triton, or with the desired settings");
        }
        if (model == null) {
            server = new TraceSampler(server.settings().with(changes, initial));
            // Settings that a model has overridden stay; all others follow the server.
            own.forEach((name, differently) ->
                    byModel.put(name, new TraceSampler(server.settings().with(differently, server.settings()))));
        } else if (!changes.isEmpty()) {
            Map<String, List<String>> differently = new HashMap<>(own.getOrDefault(model, Map.of()));
            changes.forEach((name, values) -> {
                if (values == null) {
                    differently.remove(name);
                } else {
                    differently.put(name, values);
                }
            });
            TraceSettings next = server.settings().with(changes, server.settings());
            if (differently.isEmpty()) {
                own.remove(model);
                byModel.remove(model);
            } else {
                own.put(model, differently);
                byModel.put(model, new TraceSampler(next.with(differently, server.settings())));
            }
        }
        on = server.settings().on()
                || byModel.values().stream().anyMatch(s -> s.settings().on());
        return settings(model);
    }

    /** Writes all finished traces and stops tracing. */
    @Override
    public void close() {
        on = false;
        if (file != null) {
            file.close();
        }
        if (otlp != null) {
            otlp.close();
        }
    }
}
