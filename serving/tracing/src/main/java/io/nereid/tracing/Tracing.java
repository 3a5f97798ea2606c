// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

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
 * Decides which requests are traced, for the server and for single models, and hands their traces to files or to
 * OpenTelemetry. A request that is not traced costs one volatile read. Thread-safe.
 */
public final class Tracing implements AutoCloseable {
    private static final List<String> FILE_SETTINGS = List.of("file", "log-frequency");
    private static final List<String> OTLP_SETTINGS =
            List.of("url", "bsp_max_queue_size", "bsp_schedule_delay", "bsp_max_export_batch_size");

    private final TraceOptions options;
    private final TraceSettings initial;
    private final @Nullable TraceFile file;
    private final @Nullable OtlpTraces otlp;
    private final Map<String, Sampler> byModel = new ConcurrentHashMap<>();
    /** What single models say differently from the server; guarded by this. */
    private final Map<String, Map<String, List<String>>> own = new HashMap<>();

    private volatile Sampler server;
    /** Whether any setting traces anything. */
    private volatile boolean on;

    /**
     * Traces as the options say.
     *
     * @throws ServingException INVALID_ARGUMENT for a setting that is unknown or has a wrong value
     */
    public Tracing(TraceOptions options, Clock clock) {
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
        this.server = new Sampler(initial);
        this.file = triton ? new TraceFile(options.modeSettings().getOrDefault("file", "")) : null;
        this.otlp = triton ? null : new OtlpTraces(options, clock);
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

    /** The trace of a request that has just arrived, or null when it is not sampled. */
    public @Nullable RequestTrace trace(String model, @Nullable String traceparent) {
        if (!on) {
            return null;
        }
        Sampler differently = byModel.isEmpty() ? null : byModel.get(model);
        Sampler sampler = differently == null ? server : differently;
        OtlpTraces spans = otlp;
        // Who has traced a request so far wants to see the rest of it.
        boolean forced = spans != null
                && OtlpTraces.sampled(traceparent)
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

    /** How requests are traced, for one model or, with null, the server; values as clients see them. */
    public Map<String, List<String>> settings(@Nullable String model) {
        Sampler sampler = model == null ? server : byModel.getOrDefault(model, server);
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

    /** Changes how requests are traced; a null value goes back to the server's, or to the start-up, value. */
    public synchronized Map<String, List<String>> update(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> changes) {
        if (otlp != null && !changes.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "trace settings can not be updated while traces go to OpenTelemetry",
                    "start the server with --trace-config mode=triton, or with the settings wanted");
        }
        if (model == null) {
            server = new Sampler(server.settings().with(changes, initial));
            // What a model has made its own stays; everything else follows the server.
            own.forEach((name, differently) ->
                    byModel.put(name, new Sampler(server.settings().with(differently, server.settings()))));
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
                byModel.put(model, new Sampler(next.with(differently, server.settings())));
            }
        }
        on = server.settings().on()
                || byModel.values().stream().anyMatch(s -> s.settings().on());
        return settings(model);
    }

    /** Writes out what there is. */
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
