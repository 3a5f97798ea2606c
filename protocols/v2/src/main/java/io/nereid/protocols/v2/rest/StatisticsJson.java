// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.json.JsonWriter;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import io.nereid.protocols.v2.codec.ModelReferences;
import java.util.List;
import java.util.Map;

/** Writes model statistics as JSON of Triton's statistics extension. Holds no state. */
final class StatisticsJson {
    private StatisticsJson() {}

    static void write(List<ModelStatisticsSnapshot> reports, JsonWriter json) {
        json.beginObject().name("model_stats").beginArray();
        for (ModelStatisticsSnapshot report : reports) {
            write(report, json);
        }
        json.endArray().endObject();
    }

    private static void write(ModelStatisticsSnapshot report, JsonWriter json) {
        json.beginObject().name("name").value(report.model());
        json.name("version")
                .value(ModelReferences.unversioned(report.version()) ? "" : Long.toString(report.version()));
        json.name("last_inference").value(report.lastInferenceMillis());
        json.name("inference_count").value(report.inferences());
        json.name("execution_count").value(report.executions());
        json.name("inference_stats").beginObject();
        total(json, "success", report.success());
        total(json, "fail", report.failure());
        total(json, "queue", report.queue());
        total(json, "compute_input", report.computeInput());
        total(json, "compute_infer", report.computeInfer());
        total(json, "compute_output", report.computeOutput());
        total(json, "cache_hit", report.cacheHit());
        total(json, "cache_miss", report.cacheMiss());
        json.endObject().name("response_stats").beginObject();
        for (Map.Entry<String, ModelStatisticsSnapshot.Response> entry :
                report.responses().entrySet()) {
            ModelStatisticsSnapshot.Response response = entry.getValue();
            json.name(entry.getKey()).beginObject();
            total(json, "compute_infer", response.computeInfer());
            total(json, "compute_output", response.computeOutput());
            total(json, "success", response.success());
            total(json, "fail", response.failure());
            total(json, "empty_response", response.empty());
            total(json, "cancel", response.cancel());
            json.endObject();
        }
        json.endObject().name("batch_stats").beginArray();
        for (ModelStatisticsSnapshot.Batch batch : report.batches()) {
            json.beginObject().name("batch_size").value(batch.size());
            total(json, "compute_input", batch.computeInput());
            total(json, "compute_infer", batch.computeInfer());
            total(json, "compute_output", batch.computeOutput());
            json.endObject();
        }
        json.endArray().name("memory_usage").beginArray();
        for (ModelStatisticsSnapshot.Memory memory : report.memory()) {
            json.beginObject().name("type").value(memory.type()).name("id").value(memory.id());
            json.name("byte_size").value(memory.bytes()).endObject();
        }
        json.endArray().endObject();
    }

    private static void total(JsonWriter json, String name, Total total) {
        json.name(name).beginObject().name("count").value(total.count());
        json.name("ns").value(total.nanos()).endObject();
    }
}
