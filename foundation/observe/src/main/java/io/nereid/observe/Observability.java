// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The observability API of the server, on which the statistics, trace and log endpoints of the protocols are built.
 * Implementations are thread-safe and never block.
 */
public interface Observability {
    /** An implementation that counts nothing, traces nothing and has no settings. */
    @SuppressWarnings("ClassInitializationDeadlock") // nothing names the class of the constant but this interface
    Observability NONE = new NoopObservability();

    /**
     * Returns the statistics of the available versions.
     *
     * @param model one model, or null for all models
     * @param version one version, or -1 for all versions
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a model or version that is not available
     */
    List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version);

    /**
     * Returns samples of slow and failed requests of the available versions; empty where none are kept.
     *
     * @param model one model
     * @param version one version, or -1 for all versions
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a model or version that is not available
     */
    default List<RequestSamples> requestSamples(String model, long version) {
        return List.of();
    }

    /**
     * Starts the trace of a request that has just arrived; null when the request is not sampled.
     *
     * @param model the requested model
     * @param traceparent the W3C {@code traceparent} of the request, or null
     */
    @Nullable RequestTrace trace(String model, @Nullable String traceparent);

    /**
     * Returns the trace settings: names and values as in Triton's trace extension.
     *
     * @param model one model, or null for the server's settings
     */
    Map<String, List<String>> traceSettings(@Nullable String model);

    /**
     * Changes the trace settings.
     *
     * @param model one model, or null for the server's settings
     * @param settings values by name; a null value restores the server's value, or the value of the start
     * @return the settings now in effect
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an invalid setting, or UNIMPLEMENTED for one that
     *     only a restart can change; no setting has changed then
     */
    Map<String, List<String>> updateTraceSettings(
            @Nullable String model, Map<String, ? extends @Nullable List<String>> settings);

    /** Returns the log settings: String, Boolean and Long by name, as in Triton's logging extension. */
    Map<String, Object> logSettings();

    /** Changes the log settings; errors as for {@link #updateTraceSettings}. */
    Map<String, Object> updateLogSettings(Map<String, Object> settings);
}
