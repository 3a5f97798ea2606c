// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.service;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.manifest.ManifestOptions;
import io.nereid.control.kubernetes.manifest.OperatorManifests;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Services that need a gateway, in a cluster that gets and loses the gateways of an installation. */
@Execution(ExecutionMode.CONCURRENT)
class GatewayPresenceTest {
    @TempDir
    static Path directory;

    private static ClusterClient client;

    private static ObjectNode get(ResourceKind kind, String name) {
        return client.get(kind, "default", name);
    }

    private static JsonNode condition(ResourceKind kind, String name, String type) {
        for (JsonNode condition : get(kind, name).path("status").path("conditions")) {
            if (condition.path("type").asText().equals(type)) {
                return condition;
            }
        }
        return MissingNode.getInstance();
    }

    private static boolean is(ResourceKind kind, String name, String type, String status) {
        return condition(kind, name, type).path("status").asText().equals(status);
    }

    private static boolean areReady(String status) {
        return is(ResourceKinds.INFERENCE_SERVICE, "iris", "Ready", status)
                && is(ResourceKinds.INFERENCE_GRAPH, "graph", "Ready", status);
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(150).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime())
                    .as(() -> what + ": " + get(ResourceKinds.INFERENCE_SERVICE, "iris")
                            + get(ResourceKinds.INFERENCE_GRAPH, "graph"))
                    .isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    @Test
    void aServiceIsReadyOnlyWhileAGatewayTakesItsRequests() throws Exception {
        try (OperatorCluster fixture = OperatorCluster.start(directory);
                KubernetesClient own = fixture.cluster().connect();
                KubernetesClient leases = fixture.cluster().connect();
                Operator operator = new Operator(
                        new OperatorOptions(HOME, Set.of(), "one", 0, null, null), own, leases, () -> {})) {
            client = fixture.client();
            operator.start();
            client.create(ResourceKinds.INFERENCE_SERVICE, service("iris", "Knative", ""));
            client.create(ResourceKinds.INFERENCE_SERVICE, service("plain", "Standard", ""));
            until(
                    "the pods are ready and nothing else",
                    () -> is(ResourceKinds.INFERENCE_SERVICE, "iris", "PredictorReady", "True"));
            JsonNode ingress = condition(ResourceKinds.INFERENCE_SERVICE, "iris", "IngressReady");
            assertThat(ingress.path("status").asText()).isEqualTo("False");
            assertThat(ingress.path("reason").asText()).isEqualTo("GatewayNotReady");
            JsonNode ready = condition(ResourceKinds.INFERENCE_SERVICE, "iris", "Ready");
            assertThat(ready.path("status").asText()).isEqualTo("False");
            assertThat(ready.path("message").asText())
                    .contains("the Service nereid-gateway in the namespace nereid has no ready pod");
            until(
                    "the Standard mode needs no gateway",
                    () -> is(ResourceKinds.INFERENCE_SERVICE, "plain", "Ready", "True"));
            client.create(
                    ResourceKinds.INFERENCE_GRAPH,
                    tree("{'apiVersion':'serving.kserve.io/v1alpha1','kind':'InferenceGraph','metadata':"
                            + "{'name':'graph','namespace':'default'},'spec':{'nodes':{'root':{'routerType':'Sequence',"
                            + "'steps':[{'serviceName':'plain'}]}}}}"));
            until(
                    "a graph needs one",
                    () -> condition(ResourceKinds.INFERENCE_GRAPH, "graph", "Ready")
                            .path("reason")
                            .asText()
                            .equals("GatewayNotReady"));
            String uid = get(ResourceKinds.INFERENCE_GRAPH, "graph")
                    .at("/metadata/uid")
                    .asText();
            ObjectNode unused = KserveObjects.create(
                    fixture.cluster().client(),
                    tree("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'graph','namespace':'default',"
                            + "'labels':{'serving.kserve.io/inferencegraph':'graph'},'ownerReferences':[{'apiVersion':"
                            + "'serving.kserve.io/v1alpha1','kind':'InferenceGraph','name':'graph','controller':true,"
                            + "'uid':'" + uid + "'}]},'spec':{'selector':{'matchLabels':{'app':'isvc.graph'}},"
                            + "'template':{'metadata':{'labels':{'app':'isvc.graph'}},'spec':{'containers':["
                            + "{'name':'graph','image':'kserve/router:v0.20.0'}]}}}}"));
            unused = client.merge(
                    ResourceKinds.INFERENCE_GRAPH,
                    "default",
                    "graph",
                    tree("{'spec':{'nodes':{'root':{'routerType':'Sequence','steps':[{'serviceName':'plain','name':"
                            + "'first'}]}}}}"));
            until(
                    "the operator has looked at the graph again",
                    () -> get(ResourceKinds.INFERENCE_GRAPH, "graph")
                                    .at("/status/observedGeneration")
                                    .asInt()
                            == 2);
            LockSupport.parkNanos(Duration.ofSeconds(1).toNanos());
            assertThat(get(ClusterKinds.DEPLOYMENT, "graph"))
                    .as("KServe's router serves the graph until a gateway can")
                    .isNotNull();

            Path file = directory.resolve("manifests.json");
            Files.writeString(
                    file,
                    OperatorManifests.of(ManifestOptions.of("nereid"), JsonNode::toPrettyString).stream()
                            .filter(object -> object.path("metadata")
                                            .path("name")
                                            .asText()
                                            .startsWith("nereid-gateway")
                                    || object.path("kind").asText().equals("PriorityClass"))
                            .map(ObjectNode::toString)
                            .collect(Collectors.joining("\n")));
            fixture.cluster().kubectl("apply", "--server-side", "-f", file.toString());
            until("the gateway makes both ready", () -> areReady("True"));
            until("KServe's router goes", () -> get(ClusterKinds.DEPLOYMENT, "graph") == null);
            assertThat(get(ClusterKinds.SERVICE, "iris")
                            .path("metadata")
                            .path("annotations")
                            .has(GatewayObjects.ROUTE))
                    .isTrue();

            fixture.cluster().kubectl("delete", "horizontalpodautoscaler", "nereid-gateway", "-n", HOME);
            fixture.cluster().kubectl("scale", "deployment", "nereid-gateway", "--replicas=0", "-n", HOME);
            until("the last gateway goes", () -> areReady("False"));
            assertThat(get(ClusterKinds.SERVICE, "iris")
                            .path("metadata")
                            .path("annotations")
                            .has(GatewayObjects.ROUTE))
                    .as("the route stays, for the next gateway")
                    .isTrue();
            fixture.cluster().kubectl("scale", "deployment", "nereid-gateway", "--replicas=2", "-n", HOME);
            until("the next ones are there", () -> areReady("True"));
        }
    }
}
