// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.server;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.embedded.Nereid;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.Observability;
import io.nereid.observe.RequestSamples;
import io.nereid.observe.RequestTrace;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Shows the statistics of an application's models. Logs and traces are the application's own. Thread-safe. */
final class EngineObservability implements Observability {
    private final Nereid nereid;

    EngineObservability(Nereid nereid) {
        this.nereid = nereid;
    }

    @Override
    public List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version) {
        return nereid.statistics(model, version);
    }

    @Override
    public List<RequestSamples> requestSamples(String model, long version) {
        return nereid.requestSamples(model, version);
    }

    @Override
    public @Nullable RequestTrace trace(String model, @Nullable String traceparent) {
        return null;
    }

    @Override
    public Map<String, List<String>> traceSettings(@Nullable String model) {
        return Observability.NONE.traceSettings(model);
    }

    @Override
    public Map<String, List<String>> updateTraceSettings(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> settings) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED, "traces are those of the application that this server is a part of");
    }

    @Override
    public Map<String, Object> logSettings() {
        return Observability.NONE.logSettings();
    }

    @Override
    public Map<String, Object> updateLogSettings(Map<String, Object> settings) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED, "logs are those of the application that this server is a part of");
    }
}
