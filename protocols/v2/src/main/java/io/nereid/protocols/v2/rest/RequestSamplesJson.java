// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.json.JsonWriter;
import io.nereid.observe.RequestSamples;
import io.nereid.observe.RequestSamples.FailedRequest;
import io.nereid.observe.RequestSamples.SlowRequest;
import io.nereid.protocols.v2.codec.ModelReferences;
import java.util.List;

/** Writes samples of slow and failed requests as JSON; times are microseconds. Holds no state. */
final class RequestSamplesJson {
    private RequestSamplesJson() {}

    static void write(List<RequestSamples> versions, JsonWriter json) {
        json.beginObject().name("model_requests").beginArray();
        for (RequestSamples version : versions) {
            json.beginObject().name("name").value(version.model());
            json.name("version")
                    .value(ModelReferences.unversioned(version.version()) ? "" : Long.toString(version.version()));
            if (version.thresholdNanos() != Long.MAX_VALUE) {
                json.name("threshold_us").value(version.thresholdNanos() / 1_000);
            }
            slow(json, "slow", version.slow());
            slow(json, "slowest", version.slowest());
            json.name("errors").beginArray();
            for (FailedRequest failed : version.failed()) {
                begin(json, failed.id(), failed.endMillis(), failed.totalNanos());
                json.name("code").value(failed.code()).name("message").value(failed.message());
                json.endObject();
            }
            json.endArray().endObject();
        }
        json.endArray().endObject();
    }

    private static void slow(JsonWriter json, String name, List<SlowRequest> requests) {
        json.name(name).beginArray();
        for (SlowRequest request : requests) {
            begin(json, request.id(), request.endMillis(), request.totalNanos());
            json.name("queue_us").value(request.queueNanos() / 1_000);
            json.name("input_us").value(request.inputNanos() / 1_000);
            json.name("compute_us").value(request.computeNanos() / 1_000);
            json.name("output_us").value(request.outputNanos() / 1_000);
            json.name("rows").value(request.rows());
            json.name("cache_hit").value(request.cacheHit()).endObject();
        }
        json.endArray();
    }

    private static void begin(JsonWriter json, String id, long endMillis, long totalNanos) {
        json.beginObject();
        if (!id.isEmpty()) {
            json.name("id").value(id);
        }
        json.name("time_ms").value(endMillis).name("total_us").value(totalNanos / 1_000);
    }
}
