// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Counts and traces nothing. Immutable. */
final class NoopObservability implements Observability {
    @Override
    public List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version) {
        return List.of();
    }

    @Override
    public @Nullable RequestTrace trace(String model, @Nullable String traceparent) {
        return null;
    }

    @Override
    public Map<String, List<String>> traceSettings(@Nullable String model) {
        return Map.of();
    }

    @Override
    public Map<String, List<String>> updateTraceSettings(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> settings) {
        throw ServingException.of(ErrorCode.UNIMPLEMENTED, "trace settings are not supported by this server");
    }

    @Override
    public Map<String, Object> logSettings() {
        return Map.of();
    }

    @Override
    public Map<String, Object> updateLogSettings(Map<String, Object> settings) {
        throw ServingException.of(ErrorCode.UNIMPLEMENTED, "log settings are not supported by this server");
    }
}
