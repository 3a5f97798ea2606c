// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.Observability;
import io.nereid.observe.RequestTrace;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Stores settings, and returns traces that record their events. Confined to one thread. */
public final class FakeObservation implements Observability {
    /** A trace as a list of words. */
    public static final class Trace implements RequestTrace {
        public final String model;
        public final @Nullable String traceparent;
        public final List<String> events = new ArrayList<>();
        private boolean ended;

        Trace(String model, @Nullable String traceparent) {
            this.model = model;
            this.traceparent = traceparent;
        }

        private void record(String word) {
            if (ended) {
                throw new AssertionError(word + " after the end");
            }
            events.add(word);
        }

        @Override
        public void event(Event event, long nanos) {
            record(event.name());
        }

        @Override
        public void attribute(String name, String value) {
            record(name + "=" + value);
        }

        @Override
        public boolean includesTensors() {
            return false;
        }

        @Override
        public void tensors(String activity, List<Tensor> tensors) {
            record(activity);
        }

        @Override
        public void model(String name, long version, String requestId) {
            record("model " + name);
        }

        @Override
        public RequestTrace child(String childModel) {
            return new Trace(childModel, null);
        }

        @Override
        public String traceId() {
            return "1";
        }

        @Override
        public @Nullable String traceparent() {
            return traceparent;
        }

        @Override
        public void end() {
            record("end");
            ended = true;
        }
    }

    public final List<Trace> traces = new ArrayList<>();
    final Map<String, List<String>> trace = new LinkedHashMap<>();
    final Map<String, Object> log = new LinkedHashMap<>();
    public List<ModelStatisticsSnapshot> reports = List.of();
    public String asked = "";
    public boolean sampling = true;

    public FakeObservation() {
        trace.put("trace_level", List.of("OFF"));
        trace.put("trace_rate", List.of("1000"));
        log.put("log_info", true);
        log.put("log_verbose_level", 0L);
        log.put("log_format", "default");
    }

    @Override
    public List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version) {
        asked = model + " " + version;
        if ("nobody".equals(model)) {
            throw ServingException.invalidArgument("requested model 'nobody' is not available");
        }
        return reports;
    }

    @Override
    public @Nullable RequestTrace trace(String model, @Nullable String traceparent) {
        if (!sampling) {
            return null;
        }
        Trace made = new Trace(model, traceparent);
        traces.add(made);
        return made;
    }

    @Override
    public Map<String, List<String>> traceSettings(@Nullable String model) {
        asked = String.valueOf(model);
        return trace;
    }

    @Override
    public Map<String, List<String>> updateTraceSettings(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> settings) {
        asked = model + " " + settings;
        settings.forEach((name, value) -> {
            if (value == null) {
                trace.remove(name);
            } else {
                trace.put(name, value);
            }
        });
        return trace;
    }

    @Override
    public Map<String, Object> logSettings() {
        return log;
    }

    @Override
    public Map<String, Object> updateLogSettings(Map<String, Object> settings) {
        log.putAll(settings);
        return log;
    }
}
