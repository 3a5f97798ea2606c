// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.testing.kubernetes.TestCluster;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** The operator with a real API server, real controllers and a real scheduler; nodes make pods ready at once. */
@Execution(ExecutionMode.CONCURRENT)
class OperatorTest {

    @TempDir
    static Path directory;

    private static OperatorCluster fixture;
    private static TestCluster cluster;
    private static ClusterClient client;

    @BeforeAll
    static void start() throws Exception {
        fixture = OperatorCluster.start(directory);
        cluster = fixture.cluster();
        client = fixture.client();
    }

    @AfterAll
    static void stop() {
        if (fixture != null) {
            fixture.close();
        }
    }

    /** An operator of its own for a test, as a process would have it. */
    private static final class Running implements AutoCloseable {
        final KubernetesClient own = cluster.connect();
        final KubernetesClient leases = cluster.connect();
        final CountDownLatch lost = new CountDownLatch(1);
        final Operator operator;

        Running(String identity) {
            operator = new Operator(
                    new OperatorOptions(HOME, Set.of(), identity, 0, null, null), own, leases, lost::countDown);
            operator.start();
            until("the operator leads", operator::isLeader);
        }

        /** The requests of the operator so far but for lists and watches, by kind and verb. */
        Map<String, Long> requests() {
            try {
                String page = HttpClient.newHttpClient()
                        .send(
                                HttpRequest.newBuilder(
                                                URI.create("http://localhost:" + operator.healthPort() + "/metrics"))
                                        .build(),
                                HttpResponse.BodyHandlers.ofString())
                        .body();
                Map<String, Long> requests = new TreeMap<>();
                page.lines()
                        .filter(line -> line.startsWith("nereid_operator_api_requests_total{"))
                        .forEach(line -> {
                            String labels = line.substring(line.indexOf('{') + 1, line.indexOf('}'));
                            requests.put(
                                    labels.replaceAll("(verb|kind)=|\"", "").replace(',', ' '),
                                    (long) Double.parseDouble(line.substring(line.indexOf('}') + 2)));
                        });
                return requests;
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }

        @Override
        public void close() {
            operator.close();
            own.close();
            leases.close();
        }
    }

    private static ObjectNode service(String name, String more) {
        return OperatorCluster.service(name, "Standard", more);
    }

    private static JsonNode condition(String name, String type) {
        ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, "default", name);
        if (service != null) {
            for (JsonNode condition : service.path("status").path("conditions")) {
                if (condition.path("type").asText().equals(type)) {
                    return condition;
                }
            }
        }
        return MissingNode.getInstance();
    }

    private static boolean is(String name, String type, String status) {
        return condition(name, type).path("status").asText().equals(status);
    }

    private static @Nullable ObjectNode object(ResourceKind kind, String name) {
        return client.get(kind, "default", name);
    }

    @Test
    void aLanguageModelIsNotReadyAndSaysWhy() {
        ObjectNode model = OperatorCluster.tree("{'apiVersion':'serving.kserve.io/v1alpha2',"
                + "'kind':'LLMInferenceService','metadata':{'name':'opt','namespace':'default'},"
                + "'spec':{'model':{'uri':'hf://facebook/opt-125m'}}}");
        try (Running running = new Running("language-models")) {
            assertThat(running.lost.getCount()).isEqualTo(1);
            client.create(ResourceKinds.LLM_INFERENCE_SERVICE, model);
            until("the status of the language model", () -> {
                ObjectNode stored = object(ResourceKinds.LLM_INFERENCE_SERVICE, "opt");
                return stored != null
                        && stored.path("status").findValuesAsText("reason").contains("LanguageModelsNotSupported");
            });
            // The other version is converted by the API server.
            ObjectNode older = object(ResourceKinds.LLM_INFERENCE_SERVICE.inVersion("v1alpha1"), "opt");
            assertThat(older).isNotNull();
            assertThat(older.path("apiVersion").asText()).isEqualTo("serving.kserve.io/v1alpha1");
        }
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    @Test
    void aServiceBecomesReadyComesToRestAndSurvivesARestart() throws Exception {
        Map<String, Long> requests;
        try (Running first = new Running("first")) {
            client.create(ResourceKinds.INFERENCE_SERVICE, service("iris", ""));
            until("the service is ready", () -> is("iris", "Ready", "True"));
            assertThat(object(ClusterKinds.SERVICE, "iris-predictor")).isNotNull();
            assertThat(object(ClusterKinds.DEPLOYMENT, "iris-predictor")).isNotNull();
            assertThat(object(ClusterKinds.HORIZONTAL_POD_AUTOSCALER, "iris-predictor"))
                    .isNotNull();
            // Long enough for details of the status that are held back.
            requests = settled(first, 17);
            assertThat(requests.entrySet().stream()
                            .filter(e -> e.getKey().endsWith(" apply"))
                            .allMatch(e -> e.getValue() == 1))
                    .as("one write for each object: %s", requests)
                    .isTrue();
            assertThat(requests.getOrDefault("InferenceService update-status", 0L))
                    // Pending and ready; a third for details 15 s later.
                    .as("statuses: %s", requests)
                    .isBetween(1L, 3L);
        }
        try (Running second = new Running("second")) {
            Map<String, Long> again = settled(second, 5);
            assertThat(again.keySet())
                    .as("writes after a restart: %s", again)
                    .allMatch(request -> request.endsWith(" get"));
            client.merge(
                    ResourceKinds.INFERENCE_SERVICE,
                    "default",
                    "iris",
                    tree("{'spec':{'predictor':{'minReplicas':2,'maxReplicas':3}}}"));
            until("the autoscaler follows", () -> {
                ObjectNode autoscaler = object(ClusterKinds.HORIZONTAL_POD_AUTOSCALER, "iris-predictor");
                return autoscaler != null
                        && autoscaler.path("spec").path("maxReplicas").asInt() == 3;
            });
            client.merge(
                    ClusterKinds.DEPLOYMENT,
                    "default",
                    "iris-predictor",
                    tree("{'spec':{'template':{'spec':{'nodeSelector':null,'terminationGracePeriodSeconds':30},"
                            + "'metadata':{'labels':{'app':'isvc.iris-predictor'}}}}}"));
            client.delete(ClusterKinds.SERVICE, "default", "iris-predictor", null);
            until("a deleted object is made again", () -> object(ClusterKinds.SERVICE, "iris-predictor") != null);
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "iris", null);
            until("the service is gone", () -> object(ResourceKinds.INFERENCE_SERVICE, "iris") == null);
            until(
                    "its objects are gone",
                    () -> object(ClusterKinds.DEPLOYMENT, "iris-predictor") == null
                            && object(ClusterKinds.SERVICE, "iris-predictor") == null
                            && object(ClusterKinds.HORIZONTAL_POD_AUTOSCALER, "iris-predictor") == null);
        }
    }

    /** Waits until the operator has made no request for some seconds; returns the requests so far. */
    private static Map<String, Long> settled(Running running, int seconds) {
        Map<String, Long> before = running.requests();
        long quiet = System.nanoTime();
        long end = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        while (System.nanoTime() - quiet < TimeUnit.SECONDS.toNanos(seconds)) {
            assertThat(System.nanoTime())
                    .as("the operator comes to rest: %s", before)
                    .isLessThan(end);
            LockSupport.parkNanos(200_000_000);
            Map<String, Long> now = running.requests();
            if (!now.equals(before)) {
                before = now;
                quiet = System.nanoTime();
            }
        }
        return before;
    }

    /** KServe deletes the workers and makes them again without end. */
    @Test
    void aModelOnSeveralNodesComesToRestAndKeepsItsObjects() {
        ObjectNode service = tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService','metadata':"
                + "{'name':'big','namespace':'default','annotations':{'serving.kserve.io/deploymentMode':'Standard',"
                + "'serving.kserve.io/autoscalerClass':'none'}},'spec':{'predictor':{'model':{'modelFormat':"
                + "{'name':'huggingface'},'runtime':'kserve-huggingfaceserver-multinode','storageUri':'pvc://models/llm'},"
                + "'workerSpec':{'pipelineParallelSize':2,'tensorParallelSize':2}}}}");
        try (Running running = new Running("several-nodes")) {
            client.create(ResourceKinds.INFERENCE_SERVICE, service);
            until("the workers are there", () -> object(ClusterKinds.DEPLOYMENT, "big-predictor-worker") != null);
            Map<String, Long> requests = settled(running, 3);
            assertThat(requests.keySet()).as("%s", requests).noneMatch(request -> request.endsWith(" delete"));
            List<String> before = identities("1");
            assertThat(before).doesNotContain("");
            // Another look at the same service.
            client.merge(
                    ResourceKinds.INFERENCE_SERVICE,
                    "default",
                    "big",
                    tree("{'metadata':{'labels':{'look':'again'}}}"));
            Map<String, Long> again = settled(running, 3);
            assertThat(again.keySet()).as("%s", again).noneMatch(request -> request.endsWith(" delete"));
            assertThat(identities("1")).isEqualTo(before);
            client.merge(
                    ResourceKinds.INFERENCE_SERVICE,
                    "default",
                    "big",
                    tree("{'spec':{'predictor':{'workerSpec':{'pipelineParallelSize':3}}}}"));
            until(
                    "the next generation has its own addresses",
                    () -> identities("2").stream().noneMatch(String::isEmpty));
            assertThat(identities("2").subList(0, 2)).isEqualTo(before.subList(0, 2));
            until(
                    "those of the former one are gone",
                    () -> object(ClusterKinds.SERVICE, "big-head-1") == null
                            && object(ClusterKinds.SERVICE, "big-workers-1") == null);
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "big", null);
        }
    }

    /** The uids of the Deployments and Services of the model on several nodes; empty for those that do not exist. */
    private static List<String> identities(String generation) {
        List<String> uids = new ArrayList<>();
        for (String name : List.of("big-predictor", "big-predictor-worker")) {
            uids.add(uid(object(ClusterKinds.DEPLOYMENT, name)));
        }
        for (String name : List.of("big-predictor", "big-head-" + generation, "big-workers-" + generation)) {
            uids.add(uid(object(ClusterKinds.SERVICE, name)));
        }
        return uids;
    }

    private static String uid(@Nullable ObjectNode object) {
        return object == null ? "" : object.path("metadata").path("uid").asText();
    }

    @Test
    void whatTheApiServerRefusesIsInTheStatus() {
        try (Running running = new Running("refused")) {
            // More is requested than the limit allows: admission takes it, the Deployment's validation does not.
            ObjectNode refused = service("refused", "");
            refused.withObject("/spec/predictor/model/resources")
                    .setAll(tree("{'requests':{'memory':'4Gi'},'limits':{'memory':'1Gi'}}"));
            client.create(ResourceKinds.INFERENCE_SERVICE, refused);
            until(
                    "the status has the words of the API server",
                    () -> condition("refused", "Ready")
                            .path("message")
                            .asText()
                            .contains("must be less than or equal to memory limit"));
            assertThat(condition("refused", "PredictorReady").path("reason").asText())
                    .isEqualTo("ReconcileFailed");
            Map<String, Long> requests = settled(running, 5);
            assertThat(requests.getOrDefault("InferenceService update-status", 0L))
                    .isBetween(1L, 2L);
            client.merge(
                    ResourceKinds.INFERENCE_SERVICE,
                    "default",
                    "refused",
                    tree("{'spec':{'predictor':{'model':{'resources':{'limits':{'memory':'4Gi'}}}}}}"));
            until("the service is ready", () -> is("refused", "Ready", "True"));
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "refused", null);
        }
    }

    @Test
    void aTransformerAndAnExplainerOfNereidArePods() {
        ObjectNode settings = tree(
                "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'inferenceservice-config'}," + "'data':{}}");
        settings.withObject("/metadata").put("namespace", HOME);
        settings.withObject("/data").put("nereid", "{\"image\": \"nereid:1\"}");
        client.create(ResourceKinds.CONFIG_MAP, settings);
        try (Running running = new Running("parts")) {
            ObjectNode parts = service("parts", "");
            parts.withObject("/spec")
                    .setAll(tree("{'transformer':{'nereid':{'storageUri':'gs://steps/words','config':{'names':'a,b'}}},"
                            + "'explainer':{'nereid':{'method':'lime','storageUri':'gs://data/rows'}}}"));
            client.create(ResourceKinds.INFERENCE_SERVICE, parts);
            until("the service is ready", () -> is("parts", "Ready", "True"));
            assertThat(is("parts", "TransformerReady", "True")).isTrue();
            assertThat(is("parts", "ExplainerReady", "True")).isTrue();
            for (String component : List.of("transformer", "explainer")) {
                ObjectNode deployment = object(ClusterKinds.DEPLOYMENT, "parts-" + component);
                assertThat(deployment).isNotNull();
                assertThat(deployment
                                .at("/spec/template/spec/containers/0/command")
                                .toString())
                        .isEqualTo("[\"nereid\",\"" + component + "\"]");
                assertThat(object(ClusterKinds.SERVICE, "parts-" + component)).isNotNull();
            }
            ObjectNode service = Objects.requireNonNull(object(ResourceKinds.INFERENCE_SERVICE, "parts"));
            assertThat(service.at("/status/components/transformer/url").asText())
                    .contains("parts-transformer");
            assertThat(service.at("/status/components/explainer/url").asText()).contains("parts-explainer");
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "parts", null);
            until("the service is gone", () -> object(ResourceKinds.INFERENCE_SERVICE, "parts") == null);
        } finally {
            client.delete(ResourceKinds.CONFIG_MAP, HOME, "inferenceservice-config", null);
        }
    }

    @Test
    void anotherModeAndAGraphThatWaitsSayWhy() {
        try (Running running = new Running("unsupported")) {
            ObjectNode mesh = service("mesh", "");
            mesh.withObject("/metadata/annotations").put("serving.kserve.io/deploymentMode", "ModelMesh");
            client.create(ResourceKinds.INFERENCE_SERVICE, mesh);
            until(
                    "the service says why",
                    () -> condition("mesh", "Ready").path("reason").asText().equals("DeploymentModeNotSupported"));
            client.create(
                    ResourceKinds.INFERENCE_GRAPH,
                    tree(
                            "{'apiVersion':'serving.kserve.io/v1alpha1','kind':'InferenceGraph','metadata':{'name':'graph',"
                                    + "'namespace':'default'},'spec':{'nodes':{'root':{'routerType':'Sequence','steps':"
                                    + "[{'serviceName':'absent'}]}}}}"));
            until(
                    "the graph says why",
                    () -> String.valueOf(client.get(ResourceKinds.INFERENCE_GRAPH, "default", "graph"))
                            .contains("absent, which does not exist"));
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "mesh", null);
            client.delete(ResourceKinds.INFERENCE_GRAPH, "default", "graph", null);
            assertThat(running.lost.getCount()).isEqualTo(1);
        }
    }

    @Test
    void aServiceWithoutARuntimeSaysWhy() {
        try (Running running = new Running("why")) {
            ObjectNode unknown = service("unknown", "");
            unknown.withObject("/spec/predictor/model/modelFormat").put("name", "nothing");
            client.create(ResourceKinds.INFERENCE_SERVICE, unknown);
            until(
                    "the service says why it is not ready",
                    () -> is("unknown", "Ready", "False")
                            || !condition("unknown", "PredictorReady").isMissingNode());
            ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, "default", "unknown");
            assertThat(String.valueOf(service)).contains("NoSupportingRuntime");
            assertThat(running.lost.getCount()).isEqualTo(1);
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "unknown", null);
        }
    }
}
