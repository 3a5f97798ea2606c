// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ServiceConfig;
import io.nereid.control.api.ServingRuntime;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RuntimeSelectionTest {
    /** The table is made by a program of its own from the rules' text. */
    @Test
    void everyRowOfTheTableIsChosenAsItSays() throws IOException {
        JsonNode table = new ObjectMapper().readTree(PlanCases.text("selection.json"));
        assertThat(table.size()).isGreaterThan(500);
        for (JsonNode row : table) {
            RuntimeSelection selection = select(row);
            JsonNode expected = row.path("expect");
            assertThat(selection.reason())
                    .as(row.toString())
                    .isEqualTo(expected.path("reason").asText(null));
            String chosen =
                    selection.chosen() == null ? null : selection.chosen().name();
            assertThat(chosen)
                    .as(row.toString())
                    .isEqualTo(expected.path("runtime").asText(null));
            assertThat(selection.protocol())
                    .as(row.toString())
                    .isEqualTo(expected.path("protocol").asText(null));
            assertThat(selection.message()).isNotEmpty();
        }
    }

    @Test
    void everyRuntimeIsExplainedAndTheChosenOneOnce() throws IOException {
        for (JsonNode row : new ObjectMapper().readTree(PlanCases.text("selection.json"))) {
            RuntimeSelection selection = select(row);
            assertThat(selection.considered())
                    .as(row.toString())
                    .hasSize(catalog(row).namespaceRuntimes().size()
                            + catalog(row).clusterRuntimes().size());
            assertThat(selection.considered().stream()
                            .filter(RuntimeSelection.Considered::chosen)
                            .count())
                    .isEqualTo(selection.chosen() == null ? 0 : 1);
            assertThat(selection.considered())
                    .allSatisfy(one -> assertThat(one.why()).isNotEmpty());
        }
    }

    @Test
    void theExplanationSaysWhatStandsInTheWay() throws IOException {
        JsonNode row =
                new ObjectMapper().readTree("{\"builtIn\":true,\"format\":{\"name\":\"sklearn\"},\"protocol\":\"v2\"}");
        assertThat(why(row, "kserve-mlserver")).contains("priority 2", "comes first");
        assertThat(why(row, "kserve-sklearnserver")).contains("priority 1 where kserve-mlserver has 2");
        assertThat(why(row, "kserve-predictiveserver")).contains("only chosen by name");
        assertThat(why(row, "kserve-tensorflow-serving"))
                .contains("does not support sklearn; it supports tensorflow:1");
    }

    @Test
    void namespaceRuntimesGoFirstWhateverTheirPriority() throws IOException {
        JsonNode row = new ObjectMapper()
                .readTree(
                        "{\"builtIn\":true,\"format\":{\"name\":\"sklearn\"},\"namespace\":[{\"name\":\"own\",\"created\":1,"
                                + "\"supportedModelFormats\":[{\"name\":\"sklearn\",\"autoSelect\":true}]}]}");
        assertThat(select(row).chosen().name()).isEqualTo("own");
        assertThat(why(row, "kserve-sklearnserver")).contains("go before ClusterServingRuntimes");
    }

    private static String why(JsonNode row, String runtime) {
        return select(row).considered().stream()
                .filter(one -> one.runtime().equals(runtime))
                .findFirst()
                .orElseThrow()
                .why();
    }

    private static RuntimeSelection select(JsonNode row) {
        ObjectNode service = JsonNodeFactory.instance.objectNode();
        service.putObject("metadata").put("name", "a").put("namespace", "default");
        ObjectNode predictor = service.putObject("spec").putObject("predictor");
        ObjectNode model = predictor.putObject("model");
        model.set("modelFormat", row.get("format"));
        if (row.has("protocol")) {
            model.set("protocolVersion", row.get("protocol"));
        }
        if (row.has("runtime")) {
            model.set("runtime", row.get("runtime"));
        }
        if (row.path("worker").asBoolean()) {
            predictor.putObject("workerSpec");
        }
        RuntimeSelection selection = RuntimeSelection.of(InferenceService.read(service), catalog(row));
        assertThat(selection).isNotNull();
        return selection;
    }

    private static Catalog catalog(JsonNode row) {
        List<ServingRuntime> cluster =
                row.path("builtIn").asBoolean() ? BuiltInRuntimes.all() : runtimes(row.path("cluster"), true);
        return new Catalog(
                runtimes(row.path("namespace"), false),
                cluster,
                List.of(),
                ServiceConfig.defaults(),
                Catalog.Gateway.UNKNOWN);
    }

    private static List<ServingRuntime> runtimes(JsonNode rows, boolean cluster) {
        List<ServingRuntime> all = new ArrayList<>();
        for (JsonNode row : rows) {
            ObjectNode tree = JsonNodeFactory.instance.objectNode();
            tree.put("kind", cluster ? "ClusterServingRuntime" : "ServingRuntime");
            tree.putObject("metadata")
                    .put("name", row.path("name").asText())
                    .put(
                            "creationTimestamp",
                            Instant.ofEpochSecond(row.path("created").asLong()).toString());
            ObjectNode spec = tree.putObject("spec");
            spec.set("supportedModelFormats", row.path("supportedModelFormats"));
            spec.set(
                    "protocolVersions",
                    row.path("protocolVersions").isArray()
                            ? row.path("protocolVersions")
                            : JsonNodeFactory.instance.arrayNode());
            spec.put("disabled", row.path("disabled").asBoolean());
            spec.put("multiModel", row.path("multiModel").asBoolean());
            if (row.path("worker").asBoolean()) {
                spec.putObject("workerSpec");
            }
            all.add(ServingRuntime.read(tree));
        }
        return all;
    }
}
