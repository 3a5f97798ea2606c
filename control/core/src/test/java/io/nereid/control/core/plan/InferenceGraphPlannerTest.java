// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.plan;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
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
    void aStoppedGraphHasNoRouteAndStartsAgain() {
        Map<String, InferenceService> services =
                Map.of("one", service("one", "sklearn", null, true), "two", service("two", "sklearn", "v2", true));
        InferenceGraph stopped = InferenceGraph.read(ManifestReader.parse(
                        GRAPH.replace(
                                "generation: 3", "generation: 4, annotations: {serving.kserve.io/stop: \"true\"}"),
                        "graph")
                .get(0));
        Plan plan = plan(stopped, services, plan(services));
        assertThat(plan.route()).isNull();
        assertThat(PlanCase.tree(plan).at("/conditions/Ready").asText()).isEqualTo("False Stopped");
        assertThat(PlanCase.tree(plan).at("/conditions/Stopped").asText()).isEqualTo("True");
        assertThat(plan.status().path("observedGeneration").asInt()).isEqualTo(4);

        Plan again = plan(graph(), services, plan);
        assertThat(again.route()).isNotNull();
        assertThat(PlanCase.tree(again).at("/conditions/Ready").asText()).isEqualTo("True");
        assertThat(PlanCase.tree(again).at("/conditions/Stopped").asText()).isEqualTo("False");
        assertThat(again.events()).extracting(Plan.Event::reason).contains("InferenceGraphReady");
    }

    @Test
    void aGraphThatLosesAServiceIsReportedOnce() {
        Plan ready = plan(
                Map.of("one", service("one", "sklearn", null, true), "two", service("two", "sklearn", "v2", true)));
        assertThat(ready.events()).extracting(Plan.Event::reason).contains("InferenceGraphReady");
        Map<String, InferenceService> less = Map.of("one", service("one", "sklearn", null, true));
        Plan lost = plan(graph(), less, ready);
        assertThat(lost.events()).extracting(Plan.Event::reason).containsExactly("InferenceGraphNotReady");
        assertThat(lost.events().get(0).message()).contains("InferenceService two, which does not exist");
        assertThat(plan(graph(), less, lost).events()).isEmpty();
    }

    @Test
    void aServiceWithAContainerOfItsOwnHasTheProtocolOfItsEnvironment() {
        for (String[] one : new String[][] {
            {"v2", "/v2/models/two/infer"}, {"grpc-v2", "/v2/models/two/infer"}, {"", "/v1/models/two:predict"}
        }) {
            String text = String.format(Locale.ROOT, """
                    metadata: {name: two, namespace: team}
                    spec: {predictor: {containers: [{name: kserve-container, command: [serve], env: [{name: PROTOCOL, value: "%s"}]}]}}
                    status: {address: {url: "http://two.team.svc.cluster.local"}, conditions: [{type: Ready, status: "True"}]}
                    """, one[0]);
            Plan plan = plan(Map.of(
                    "one",
                    service("one", "sklearn", null, true),
                    "two",
                    InferenceService.read(ManifestReader.parse(text, "two").get(0))));
            assertThat(PlanCase.tree(plan).at("/route/graph").asText())
                    .contains("\"serviceUrl\":\"http://two.team.svc.cluster.local" + one[1] + "\"");
        }
    }

    @Test
    void aStepHasTheNameOfTheModel() {
        String head =
                "metadata: {name: two, namespace: team}\nstatus: {address: {url: 'http://two'}, conditions: [{type: Ready,"
                        + " status: 'True'}]}\nspec: ";
        String model = "modelFormat: {name: sklearn}, storageUri: 'gs://b'";
        for (String[] one : new String[][] {
            {"{predictor: {model: {" + model + ", args: ['--model_name=a']}}}", "/v1/models/a:predict"},
            {"{predictor: {model: {" + model + ", args: [--model-name, a]}}}", "/v1/models/a:predict"},
            {
                "{predictor: {model: {" + model
                        + ", protocolVersion: v2, env: [{name: MLSERVER_MODEL_NAME, value: m}]}}}",
                "/v2/models/m/infer"
            },
            {
                "{predictor: {containers: [{name: kserve-container, image: x, args: ['--model_name=c']}]}}",
                "/v1/models/c:predict"
            },
            {
                "{predictor: {model: {" + model + ", protocolVersion: v2}}, transformer: {containers: [{name:"
                        + " kserve-container, image: t, args: ['--model_name=t']}]}}",
                "/v1/models/t:predict"
            },
            {
                "{predictor: {model: {" + model
                        + "}}, transformer: {containers: [{name: kserve-container, image: t, env:"
                        + " [{name: PROTOCOL, value: v2}]}]}}",
                "/v2/models/two/infer"
            },
        }) {
            InferenceService service = InferenceService.read(
                    ManifestReader.parse(head + one[0], "two").get(0));
            Plan plan = plan(Map.of("one", service("one", "sklearn", null, true), "two", service));
            assertThat(PlanCase.tree(plan).at("/route/graph").asText())
                    .contains("\"serviceUrl\":\"http://two" + one[1] + "\"");
        }
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

    @Test
    void aGraphIsNotReadyWithoutAGatewayAndKeepsItsRoute() {
        Map<String, InferenceService> services =
                Map.of("one", service("one", "sklearn", null, true), "two", service("two", "onnx", "v2", true));
        Plan first = plan(services);
        Plan lost = Planner.planGraph(
                graph(),
                services::get,
                RuntimeCatalog.builtIn(),
                new ObservedState(Map.of(), List.of(), first.status(), "no gateway is ready"),
                NOW.plusSeconds(60));
        assertThat(ready(lost).path("status").asText()).isEqualTo("False");
        assertThat(ready(lost).path("reason").asText()).isEqualTo("GatewayNotReady");
        assertThat(lost.route()).isEqualTo(first.route());
        assertThat(lost.events())
                .singleElement()
                .satisfies(event -> assertThat(event.message()).contains("no gateway is ready"));
        assertThat(ready(plan(graph(), services, lost)).path("status").asText()).isEqualTo("True");
    }

    private static JsonNode ready(Plan plan) {
        for (JsonNode condition : plan.status().path("conditions")) {
            if (condition.path("type").asText().equals("Ready")) {
                return condition;
            }
        }
        throw new AssertionError("no condition Ready in " + plan.status());
    }

    private static Plan plan(Map<String, InferenceService> services) {
        return Planner.planGraph(
                graph(),
                services::get,
                RuntimeCatalog.builtIn(),
                ObservedState.nothing(com.fasterxml.jackson.databind.node.JsonNodeFactory.instance.objectNode()),
                NOW);
    }

    private static Plan plan(InferenceGraph graph, Map<String, InferenceService> services, Plan last) {
        return Planner.planGraph(
                graph,
                services::get,
                RuntimeCatalog.builtIn(),
                new ObservedState(Map.of(), List.of(), last.status()),
                NOW.plusSeconds(60));
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
