// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.top;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.connection.HttpText;
import io.nereid.app.connection.ServerConnection;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;

/**
 * What a server has counted at a moment. Immutable.
 *
 * @param nanos the moment
 * @param versions the versions of all models by key, with the server's counters
 * @param states the listed versions: model, version and state
 * @param metrics the page of metrics; without samples where it cannot be read
 */
record ServerSample(long nanos, Map<String, Counters> versions, List<Listed> states, PrometheusSamples metrics) {
    private static final String LATENCY = "nereid_request_duration_seconds";
    private static final int OK = 200;

    /** The counters of a version since it was loaded. */
    record Counters(long success, long failed, long rows, long runs) {
        private static final Counters NONE = new Counters(0, 0, 0, 0);
    }

    /** A version that the server lists. */
    record Listed(String model, String version, String state) {}

    /**
     * Reads a server.
     *
     * @param metrics where the page of metrics is read
     * @throws ServingException when the server does not respond or refuses
     */
    static ServerSample read(ServerClient client, ServerConnection metrics, String metricsPath, long nanos) {
        List<Listed> states = new ArrayList<>();
        for (JsonNode each : client.post("/v2/repository/index", null)) {
            states.add(new Listed(
                    each.path("name").asText(),
                    each.path("version").asText(""),
                    each.path("state").asText("not loaded")));
        }
        Map<String, Counters> versions = new LinkedHashMap<>();
        for (JsonNode each : client.get("/v2/models/stats").path("model_stats")) {
            JsonNode times = each.path("inference_stats");
            versions.put(
                    PrometheusSamples.key(
                            each.path("name").asText(), each.path("version").asText("")),
                    new Counters(
                            times.path("success").path("count").asLong(),
                            times.path("fail").path("count").asLong(),
                            each.path("inference_count").asLong(),
                            each.path("execution_count").asLong()));
        }
        return new ServerSample(nanos, versions, states, page(metrics, metricsPath));
    }

    private static PrometheusSamples page(ServerConnection metrics, String path) {
        try {
            HttpText response = metrics.exchange("GET", path, null, null);
            return PrometheusSamples.read(response.status() == OK ? response.body() : "", LATENCY);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.CANCELLED) {
                throw e;
            }
            return PrometheusSamples.read("", LATENCY);
        }
    }

    /** What happened between an earlier moment and this one, a row for each version. */
    List<ModelRow> since(ServerSample before) {
        double seconds = Math.max(1, nanos - before.nanos) / 1e9;
        List<ModelRow> rows = new ArrayList<>();
        for (Listed listed : states) {
            String key = PrometheusSamples.key(listed.model, listed.version);
            Counters now = versions.getOrDefault(key, Counters.NONE);
            Counters then = before.versions.getOrDefault(key, Counters.NONE);
            if (now.success < then.success || now.failed < then.failed) {
                then = Counters.NONE; // the version was loaded again
            }
            NavigableMap<Double, Double> first = before.metrics.buckets(key);
            NavigableMap<Double, Double> second = metrics.buckets(key);
            rows.add(new ModelRow(
                    listed.model,
                    listed.version,
                    listed.state,
                    (now.success - then.success) / seconds,
                    (now.failed - then.failed) / seconds,
                    PrometheusSamples.quantile(0.5, first, second) * 1e3,
                    PrometheusSamples.quantile(0.99, first, second) * 1e3,
                    metrics.sum(key, "nv_inference_pending_request_count"),
                    now.runs == then.runs ? Double.NaN : (double) (now.rows - then.rows) / (now.runs - then.runs),
                    metrics.sum(key, "nereid_model_memory_bytes"),
                    now.success,
                    now.failed));
        }
        return rows;
    }
}
