// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.plan;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;

class InferenceGraphPlannerTest {
    private static final Instant NOW = PlanCase.START;

    private static final String GRAPH = """
        metadata: {name: chain, namespace: team, generation: 3}
        spec:
          nodes:
            root: {routerType: Sequence, steps: [{serviceName: one}, {serviceName: two, data: $response}, {serviceUrl: "http://x/y"}]}
          resources: {limits: {cpu: 1}}
        """;

    @Test
    void stepsGetTheAddressesOfTheirServicesByProtocol() {
        Plan plan = plan(
                Map.of("one", service("one", "sklearn", null, true), "two", service("two", "sklearn", "v2", true)));
        ObjectNode tree = PlanCase.tree(plan);
        assertThat(tree.at("/conditions/Ready").asText()).isEqualTo("True");
        assertThat(tree.at("/route/kind").asText()).isEqualTo("InferenceGraph");
        assertThat(tree.at("/route/rules/0").asText()).isEqualTo("chain-team.example.com");
        assertThat(tree.at("/route/graph").asText())
                .contains("\"serviceUrl\":\"http://one.team.svc.cluster.local/v1/models/one:predict\"")
                .contains("\"serviceUrl\":\"http://two.team.svc.cluster.local/v2/models/two/infer\"")
                .contains("\"serviceUrl\":\"http://x/y\"");
        assertThat(tree.at("/status/url").asText()).isEqualTo("http://chain-team.example.com");
        assertThat(tree.at("/status/observedGeneration").asInt()).isEqualTo(3);
        assertThat(plan.requeueAfter()).isNull();
    }

    @Test
    void fieldsWithoutEffectAreReported() {
        Plan plan = plan(
                Map.of("one", service("one", "sklearn", null, true), "two", service("two", "sklearn", "v2", true)));
        assertThat(PlanCase.tree(plan).path("status").toString()).contains("spec.resources has no effect");
    }

    @Test
    void aGraphWaitsForItsServices() {
        Plan plan = plan(Map.of("one", service("one", "sklearn", null, false)));
        assertThat(plan.route()).isNull();
        assertThat(plan.requeueAfter()).isEqualTo(Duration.ofSeconds(2));
        assertThat(PlanCase.tree(plan).at("/conditions/Ready").asText()).isEqualTo("False ServiceNotReady");
        assertThat(plan.status().toString())
                .contains("InferenceService one, which is not ready", "InferenceService two, which does not exist");
    }

    @Test
    void planningAgainChangesNothing() {
        Map<String, InferenceService> services =
                Map.of("one", service("one", "sklearn", null, true), "two", service("two", "onnx", "v2", true));
        Plan first = plan(services);
        Plan second = Planner.planGraph(
                graph(),
                services::get,
                RuntimeCatalog.builtIn(),
                new ObservedState(Map.of(), List.of(), first.status()),
                NOW.plusSeconds(60));
        assertThat((Object) second.status()).isEqualTo(first.status());
        assertThat(second.route()).isEqualTo(first.route());
        assertThat(second.events()).isEmpty();
    }

    private static Plan plan(Map<String, InferenceService> services) {
        return Planner.planGraph(
                graph(),
                services::get,
                RuntimeCatalog.builtIn(),
                ObservedState.nothing(com.fasterxml.jackson.databind.node.JsonNodeFactory.instance.objectNode()),
                NOW);
    }

    private static InferenceGraph graph() {
        return InferenceGraph.read(ManifestReader.parse(GRAPH, "graph").get(0));
    }

    private static InferenceService service(String name, String format, String protocol, boolean ready) {
        String text = String.format(
                Locale.ROOT,
                """
                metadata: {name: %s, namespace: team}
                spec: {predictor: {model: {modelFormat: {name: %s}, storageUri: "s3://a"%s}}}
                status: {address: {url: "http://%s.team.svc.cluster.local"}, conditions: [{type: Ready, status: "%s"}]}
                """,
                name,
                format,
                protocol == null ? "" : ", protocolVersion: " + protocol,
                name,
                ready ? "True" : "False");
        return InferenceService.read(ManifestReader.parse(text, name).get(0));
    }
}
