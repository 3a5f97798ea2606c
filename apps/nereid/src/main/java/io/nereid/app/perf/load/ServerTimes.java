// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.observe.ModelStatisticsSnapshot;
import java.util.List;

/**
 * What a server counts of a model's requests; times are sums in nanoseconds. Immutable.
 *
 * @param requests successful requests
 * @param inferences rows
 * @param executions runs of the model, each with one batch
 * @param cacheHits requests that the response cache answered
 */
public record ServerTimes(
        long requests,
        long inferences,
        long executions,
        long cacheHits,
        long totalNanos,
        long queueNanos,
        long computeInputNanos,
        long computeInferNanos,
        long computeOutputNanos) {
    private static final ServerTimes ZERO = new ServerTimes(0, 0, 0, 0, 0, 0, 0, 0, 0);

    /** Reads the response of {@code /v2/models/MODEL/stats}, all versions together. */
    public static ServerTimes of(JsonNode document) {
        ServerTimes sum = ZERO;
        for (JsonNode model : document.path("model_stats")) {
            JsonNode times = model.path("inference_stats");
            sum = sum.plus(new ServerTimes(
                    times.path("success").path("count").asLong(),
                    model.path("inference_count").asLong(),
                    model.path("execution_count").asLong(),
                    times.path("cache_hit").path("count").asLong(),
                    times.path("success").path("ns").asLong(),
                    times.path("queue").path("ns").asLong(),
                    times.path("compute_input").path("ns").asLong(),
                    times.path("compute_infer").path("ns").asLong(),
                    times.path("compute_output").path("ns").asLong()));
        }
        return sum;
    }

    /** The statistics of an engine of this process, all versions together. */
    static ServerTimes of(List<ModelStatisticsSnapshot> versions) {
        ServerTimes sum = ZERO;
        for (ModelStatisticsSnapshot version : versions) {
            sum = sum.plus(new ServerTimes(
                    version.success().count(),
                    version.inferences(),
                    version.executions(),
                    version.cacheHit().count(),
                    version.success().nanos(),
                    version.queue().nanos(),
                    version.computeInput().nanos(),
                    version.computeInfer().nanos(),
                    version.computeOutput().nanos()));
        }
        return sum;
    }

    private ServerTimes plus(ServerTimes other) {
        return combined(other, 1);
    }

    /** What was counted since another moment. */
    public ServerTimes since(ServerTimes before) {
        return combined(before, -1);
    }

    private ServerTimes combined(ServerTimes other, int sign) {
        return new ServerTimes(
                requests + sign * other.requests,
                inferences + sign * other.inferences,
                executions + sign * other.executions,
                cacheHits + sign * other.cacheHits,
                totalNanos + sign * other.totalNanos,
                queueNanos + sign * other.queueNanos,
                computeInputNanos + sign * other.computeInputNanos,
                computeInferNanos + sign * other.computeInferNanos,
                computeOutputNanos + sign * other.computeOutputNanos);
    }

    /** The mean of a sum of times, in milliseconds for each request; 0 without requests. */
    public double meanMillis(long nanos) {
        return requests <= 0 ? 0 : nanos / 1e6 / requests;
    }

    /** The mean number of rows in a run; 0 without runs. */
    public double batchSize() {
        return executions <= 0 ? 0 : (double) inferences / executions;
    }
}
