// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.process.Logging;
import io.nereid.engine.Engine;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.Observability;
import io.nereid.observe.RequestSamples;
import io.nereid.observe.RequestTrace;
import io.nereid.tracing.TraceManager;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The server's observability API: combines the engine's statistics, the trace settings and the log settings.
 * Thread-safe.
 */
final class CompositeObservability implements Observability {
    private final Engine engine;
    private final TraceManager tracing;
    private final Logging logging;

    CompositeObservability(Engine engine, TraceManager tracing, Logging logging) {
        this.engine = engine;
        this.tracing = tracing;
        this.logging = logging;
    }

    @Override
    public List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version) {
        return engine.statistics(model, version);
    }

    @Override
    public List<RequestSamples> requestSamples(String model, long version) {
        return engine.requestSamples(model, version);
    }

    @Override
    public @Nullable RequestTrace trace(String model, @Nullable String traceparent) {
        return tracing.trace(model, traceparent);
    }

    @Override
    public Map<String, List<String>> traceSettings(@Nullable String model) {
        return tracing.settings(model);
    }

    @Override
    public Map<String, List<String>> updateTraceSettings(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> settings) {
        return tracing.update(model, settings);
    }

    @Override
    public Map<String, Object> logSettings() {
        return logging.settings();
    }

    @Override
    public Map<String, Object> updateLogSettings(Map<String, Object> settings) {
        return logging.update(settings);
    }
}
