// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.text.TextTable;
import io.nereid.app.text.YamlWriter;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Everything that a server has to show of a model. Immutable once read. */
final class ModelDescription {
    private final ObjectNode document;

    private ModelDescription(ObjectNode document) {
        this.document = document;
    }

    /**
     * Reads a model's states, metadata, configuration and statistics. What a server does not have, or not before the model is loaded,
     * is left out.
     *
     * @param version one version; null for all
     * @throws ServingException NOT_FOUND for a model that the server does not list
     */
    static ModelDescription read(ServerClient client, String model, @Nullable String version) {
        ObjectNode document = ServerClient.JSON.createObjectNode().put("name", model);
        var versions = document.putArray("versions");
        for (JsonNode each : client.post("/v2/repository/index", null)) {
            if (each.path("name").asText().equals(model)
                    && (version == null || each.path("version").asText().equals(version))) {
                ObjectNode one = versions.addObject();
                one.put("version", each.path("version").asText(""));
                one.put("state", each.path("state").asText("not loaded"));
                if (!each.path("reason").asText("").isEmpty()) {
                    one.put("reason", each.path("reason").asText());
                }
            }
        }
        if (versions.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "the server does not have model '" + model + "'"
                            + (version == null ? "" : " with a version '" + version + "'"),
                    "nereid models lists the models");
        }
        String path = "/v2/models/" + ServerClient.segment(model)
                + (version == null ? "" : "/versions/" + ServerClient.segment(version));
        JsonNode metadata = optional(client, path);
        if (metadata != null) {
            document.set("platform", metadata.path("platform"));
            document.set("inputs", metadata.path("inputs"));
            document.set("outputs", metadata.path("outputs"));
            set(document, "config", optional(client, path + "/config"));
            JsonNode statistics = optional(client, path + "/stats");
            set(document, "statistics", statistics == null ? null : statistics.path("model_stats"));
        }
        return new ModelDescription(document);
    }

    private static void set(ObjectNode document, String name, @Nullable JsonNode value) {
        if (value != null) {
            document.set(name, value);
        }
    }

    private static @Nullable JsonNode optional(ServerClient client, String path) {
        try {
            return client.get(path);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.UNAUTHENTICATED || e.code() == ErrorCode.PERMISSION_DENIED) {
                throw e;
            }
            return null;
        }
    }

    JsonNode document() {
        return document;
    }

    void print(PrintWriter out) {
        out.println(document.path("name").asText()
                + (document.has("platform") ? ", " + document.path("platform").asText() : ""));
        TextTable versions = new TextTable("VERSION", "STATE", "REASON");
        for (JsonNode each : document.path("versions")) {
            versions.row(
                    each.path("version").asText().isEmpty()
                            ? "-"
                            : each.path("version").asText(),
                    each.path("state").asText(),
                    each.path("reason").asText(""));
        }
        versions.print(out);
        tensors("Inputs", document.path("inputs"), out);
        tensors("Outputs", document.path("outputs"), out);
        statistics(out);
        if (!document.path("config").isEmpty()) {
            out.println("Configuration:");
            ObjectNode config = document.path("config").deepCopy();
            config.remove("name");
            for (Map.Entry<String, JsonNode> field : document.path("config").properties()) {
                JsonNode value = field.getValue();
                if (value.isContainerNode() ? value.isEmpty() : value.asText().isEmpty()) {
                    config.remove(field.getKey());
                }
            }
            YamlWriter.of(config).lines().forEach(line -> out.println("  " + line));
        }
    }

    private static void tensors(String title, JsonNode tensors, PrintWriter out) {
        if (tensors.isEmpty()) {
            return;
        }
        out.println(title + ":");
        TextTable table = new TextTable("NAME", "TYPE", "SHAPE");
        for (JsonNode each : tensors) {
            table.row(
                    each.path("name").asText(),
                    each.path("datatype").asText(),
                    each.path("shape").toString());
        }
        table.print(out);
    }

    private void statistics(PrintWriter out) {
        if (document.path("statistics").isEmpty()) {
            return;
        }
        out.println("Statistics (mean times in ms):");
        TextTable table = new TextTable("VERSION", "REQUESTS", "FAILED", "ROWS", "BATCH", "TOTAL", "QUEUE", "COMPUTE");
        for (JsonNode each : document.path("statistics")) {
            JsonNode times = each.path("inference_stats");
            long count = times.path("success").path("count").asLong();
            long runs = each.path("execution_count").asLong();
            long rows = each.path("inference_count").asLong();
            table.row(
                    each.path("version").asText("-"),
                    Long.toString(count),
                    times.path("fail").path("count").asText(),
                    Long.toString(rows),
                    runs == 0 ? "-" : String.format(Locale.ROOT, "%.2f", (double) rows / runs),
                    mean(times, count, "success"),
                    mean(times, count, "queue"),
                    mean(times, count, "compute_input", "compute_infer", "compute_output"));
        }
        table.print(out);
    }

    private static String mean(JsonNode times, long count, String... names) {
        long nanos = 0;
        for (String name : names) {
            nanos += times.path(name).path("ns").asLong();
        }
        return count == 0 ? "-" : String.format(Locale.ROOT, "%.3f", nanos / 1e6 / count);
    }
}
