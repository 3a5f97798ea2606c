// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The door for what the server tells about itself. Implementations are thread-safe and never block. */
public interface Observability {
    /** Nothing is counted, traced or to be set. */
    Observability NONE = new NoopObservability();

    /**
     * Figures of the versions that answer.
     *
     * @param model one model, or null for all
     * @param version one version, or -1 for all
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a model or version that does not answer
     */
    List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version);

    /**
     * The trace of a request that has just arrived, or null when it is not sampled.
     *
     * @param model the model asked for
     * @param traceparent W3C {@code traceparent} that came with the request, or null
     */
    @Nullable
    RequestTrace trace(String model, @Nullable String traceparent);

    /** How requests are traced: names and values as in Triton's trace extension; {@code model} null for the server. */
    Map<String, List<String>> traceSettings(@Nullable String model);

    /**
     * Changes how requests are traced.
     *
     * @param settings values by name; a null value goes back to the server's, or to the start-up, value
     * @return the settings now in force
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT, or UNIMPLEMENTED for what only a restart can change;
     *     nothing has changed then
     */
    Map<String, List<String>> updateTraceSettings(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> settings);

    /** What is logged: String, Boolean and Long by name, as in Triton's logging extension. */
    Map<String, Object> logSettings();

    /** Changes what is logged; as {@link #updateTraceSettings}. */
    Map<String, Object> updateLogSettings(Map<String, Object> settings);
}
