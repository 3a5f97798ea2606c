// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Services and graphs of one machine, as KServe's users write them and call them. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@SuppressWarnings("NullAway.Init") // set before the tests
class KserveServicesTest {
    private static final String ROWS = "{\"instances\": [[0.5, 1.5, 0, 1, -1, 2]]}";
    private static final String MERGE = "application/merge-patch+json";

    private final BlockingQueue<Set<String>> headers = new LinkedBlockingQueue<>();
    private ControlledServer server;
    private HttpServer receiver;

    @BeforeAll
    void start(@TempDir Path dir) throws IOException {
        server = new ControlledServer(dir);
        receiver = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        receiver.createContext("/", x -> {
            Set<String> names = new TreeSet<>();
            x.getRequestHeaders().keySet().forEach(names::add);
            headers.add(names);
            byte[] answer = "{\"predictions\":[1]}".getBytes(StandardCharsets.UTF_8);
            x.sendResponseHeaders(200, answer.length);
            x.getResponseBody().write(answer);
            x.close();
        });
        receiver.start();
    }

    @AfterAll
    void stop() {
        receiver.stop(0);
        server.close();
    }

    private JsonNode applied(String name, String predictor) throws Exception {
        server.ok("POST", server.controlPort, ControlledServer.SERVICES, ControlledServer.service(name, predictor));
        return server.ready(ControlledServer.SERVICES + "/" + name);
    }

    private JsonNode graph(String name, String steps) throws Exception {
        server.ok("POST", server.controlPort, ControlledServer.GRAPHS, """
                {"apiVersion":"serving.kserve.io/v1alpha1","kind":"InferenceGraph","metadata":{"name":"NAME"},
                "spec":{"nodes":{"root":{"routerType":"Sequence","steps":[STEPS]}}}}
                """.replace("NAME", name)
                .replace("STEPS", steps));
        return server.ready(ControlledServer.GRAPHS + "/" + name);
    }

    @Test
    void aServiceWithAnOldBlockServesOnWhenItIsAppliedAgain() throws Exception {
        String block = server.model("").replace("\"modelFormat\":{\"name\":\"xgboost\"},", "");
        JsonNode first = applied("old", "\"xgboost\":" + block);
        String path = ControlledServer.SERVICES + "/old";
        for (int i = 0; i < 2; i++) {
            JsonNode again = server.ok(
                    "PATCH",
                    server.controlPort,
                    path,
                    ControlledServer.service("old", "\"xgboost\":" + block),
                    "content-type",
                    MERGE);
            assertThat(again.path("spec")).isEqualTo(first.path("spec"));
            assertThat(again.at("/metadata/generation").asInt()).isEqualTo(1);
        }
        JsonNode answer = server.ok("POST", server.port, "/serving/default/old/v1/models/old:predict", ROWS);
        assertThat(answer.path("predictions")).hasSize(1);
    }

    @Test
    void aLanguageModelIsStoredUnderBothVersionsAndIsNotReady() throws Exception {
        String path = "/apis/serving.kserve.io/VERSION/namespaces/default/llminferenceservices";
        String older = path.replace("VERSION", "v1alpha1");
        String newer = path.replace("VERSION", "v1alpha2");
        JsonNode created = server.ok("POST", server.controlPort, older, """
                {"apiVersion":"serving.kserve.io/v1alpha1","kind":"LLMInferenceService","metadata":{"name":"opt"},
                "spec":{"model":{"uri":"hf://facebook/opt-125m"}}}""");
        assertThat(created.path("apiVersion").asText()).isEqualTo("serving.kserve.io/v1alpha1");
        assertThat(created.at("/spec/model/name").asText()).isEqualTo("opt");
        JsonNode stored = server.until(
                newer + "/opt", one -> one.at("/status/observedGeneration").asInt() == 1);
        assertThat(stored.path("apiVersion").asText()).isEqualTo("serving.kserve.io/v1alpha2");
        assertThat(stored.at("/status/conditions").findValuesAsText("reason")).contains("LanguageModelsNotSupported");
        JsonNode list = server.ok("GET", server.controlPort, older, "");
        assertThat(list.at("/items/0/apiVersion").asText()).isEqualTo("serving.kserve.io/v1alpha1");
        JsonNode group = server.ok("GET", server.controlPort, "/apis/serving.kserve.io", "");
        assertThat(group.path("versions").findValuesAsText("version"))
                .containsExactly("v1beta1", "v1alpha2", "v1alpha1");
        JsonNode again = server.ok(
                "PATCH",
                server.controlPort,
                older + "/opt",
                "{\"apiVersion\":\"serving.kserve.io/v1alpha1\",\"spec\":{\"replicas\":2}}",
                "content-type",
                MERGE);
        assertThat(again.path("apiVersion").asText()).isEqualTo("serving.kserve.io/v1alpha1");
        assertThat(again.at("/metadata/generation").asInt()).isEqualTo(2);
    }

    @Test
    void aModelIsThereInAdvance() throws Exception {
        String path = "/apis/serving.kserve.io/v1alpha1/";
        server.ok("POST", server.controlPort, path + "localmodelnodegroups", """
                {"apiVersion":"serving.kserve.io/v1alpha1","kind":"LocalModelNodeGroup","metadata":{"name":"disk"},
                "spec":{"storageLimit":"1Mi","persistentVolumeSpec":{},"persistentVolumeClaimSpec":{}}}""");
        server.ok("POST", server.controlPort, path + "localmodelcaches", """
                {"apiVersion":"serving.kserve.io/v1alpha1","kind":"LocalModelCache","metadata":{"name":"stump"},
                "spec":{"sourceModelUri":"URI","modelSize":"100Ki","nodeGroups":["disk"]}}""".replace("URI", server.modelUri()));
        JsonNode cache = server.until(
                path + "localmodelcaches/stump",
                one -> one.at("/status/copies/available").asInt() == 1);
        assertThat(cache.at("/status/nodeStatus/localhost").asText()).isEqualTo("NodeDownloaded");
        JsonNode node = server.ok("GET", server.controlPort, path + "localmodelnodes/localhost", "");
        assertThat(node.at("/spec/localModels/0/modelName").asText()).isEqualTo("stump");
    }

    @Test
    void theRuntimesOfKserveAndOfMlserverHaveTheirOutputs() throws Exception {
        applied("plain", "\"model\":" + server.model(""));
        applied("mlserver", "\"model\":" + server.model(",\"protocolVersion\":\"v2\""));
        String body =
                "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,6],\"data\":[0.5,1.5,0,1,-1,2]}]NAMED}";
        String path = "/serving/default/SERVICE/v2/models/SERVICE/infer";
        String named = ",\"outputs\":[{\"name\":\"output-0\"}]";
        for (String outputs : new String[] {"", named}) {
            JsonNode answer =
                    server.ok("POST", server.port, path.replace("SERVICE", "plain"), body.replace("NAMED", outputs));
            assertThat(answer.at("/outputs/0/name").asText()).isEqualTo("output-0");
        }
        JsonNode answer =
                server.ok("POST", server.port, path.replace("SERVICE", "mlserver"), body.replace("NAMED", ""));
        assertThat(answer.at("/outputs/0/name").asText()).isEqualTo("predict");
        JsonNode rows = server.ok("POST", server.port, "/serving/default/plain/v1/models/plain:predict", ROWS);
        assertThat(server.ok(
                        "POST",
                        server.port,
                        "/serving/default/plain/v1/models/plain:predict",
                        ROWS.replace("instances", "inputs")))
                .isEqualTo(rows);
    }

    @Test
    void aStepOfAGraphHasTheNameOfTheModel() throws Exception {
        applied("renamed", "\"model\":" + server.model(",\"args\":[\"--model_name=flowers\"]"));
        graph("named", "{\"serviceName\":\"renamed\"}");
        JsonNode answer = server.ok("POST", server.port, "/serving/default/named", ROWS);
        assertThat(answer.path("predictions")).as("%s", answer).hasSize(1);
        String variable =
                ",\"protocolVersion\":\"v2\",\"env\":[{\"name\":\"MLSERVER_MODEL_NAME\",\"value\":\"petals\"}]";
        applied("by-variable", "\"model\":" + server.model(variable));
        graph("named-by-variable", "{\"serviceName\":\"by-variable\"}");
        String body =
                "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,6],\"data\":[0.5,1.5,0,1,-1,2]}]}";
        answer = server.ok("POST", server.port, "/serving/default/named-by-variable", body);
        assertThat(answer.path("model_name").asText()).as("%s", answer).isEqualTo("petals");
    }

    @Test
    void aPatternThatIsNoExpressionDoesNotCostTheGraphItsRoute() throws Exception {
        String map = "/api/v1/namespaces/default/configmaps";
        HttpResponse<String> made = server.send("POST", server.controlPort, map, """
                {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"inferenceservice-config"},"data":{"router":
                "{\\"headers\\":{\\"propagate\\":[\\"Team\\",\\"[\\",\\"^X-Exact$\\",\\"X-[[:digit:]]+\\"]}}"}}
                """);
        assertThat(made.statusCode()).as(made.body()).isEqualTo(201);
        assertThat(made.headers().allValues("warning"))
                .anyMatch(one ->
                        one.contains("router.headers.propagate has \\\"[\\\", which is not a regular expression"));
        JsonNode graph = graph(
                "echo",
                "{\"serviceUrl\":\"http://127.0.0.1:" + receiver.getAddress().getPort() + "/x\"}");
        assertThat(ControlledServer.condition(graph, "FieldsWithoutEffect")
                        .path("message")
                        .asText())
                .contains("\"[\", which is not a regular expression");
        JsonNode answer = server.ok(
                "POST",
                server.port,
                "/serving/default/echo",
                ROWS,
                "x-team-name",
                "red",
                "x-exact-not",
                "1",
                "x-42",
                "1",
                "x-other",
                "1");
        assertThat(answer.path("predictions")).hasSize(1);
        assertThat(headers.poll(60, TimeUnit.SECONDS))
                .contains("X-team-name", "X-42")
                .doesNotContain("X-exact-not", "X-other");
    }

    @Test
    void objectsOfKubernetesItselfAreTakenWithoutTheirKind() throws Exception {
        String secrets = "/api/v1/namespaces/default/secrets";
        JsonNode secret = server.ok(
                "POST", server.controlPort, secrets, "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"Yg==\"}}");
        assertThat(secret.path("kind").asText()).isEqualTo("Secret");
        assertThat(secret.path("apiVersion").asText()).isEqualTo("v1");
        server.ok(
                "PUT", server.controlPort, secrets + "/s", "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"Yw==\"}}");
        server.ok(
                "POST",
                server.controlPort,
                "/api/v1/namespaces/default/serviceaccounts",
                "{\"metadata\":{\"name\":\"models\"},\"secrets\":[{\"name\":\"s\"}]}");
        HttpResponse<String> other = server.send(
                "POST", server.controlPort, secrets, "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"t\"}}");
        assertThat(other.statusCode()).isEqualTo(400);
        HttpResponse<String> custom = server.send(
                "POST", server.controlPort, ControlledServer.SERVICES, "{\"metadata\":{\"name\":\"t\"},\"spec\":{}}");
        assertThat(custom.statusCode()).isEqualTo(400);
    }

    @Test
    void whatHasNoEffectIsNamedWhenItIsApplied() throws Exception {
        String model = server.model(",\"runtimeVersion\":\"v9\",\"env\":[{\"name\":\"COLOR\",\"value\":\"red\"}]");
        String service = ControlledServer.service(
                        "named-fields",
                        "\"model\":" + model
                                + ",\"automountServiceAccountToken\":true,\"initContainers\":[{\"name\":\"i\","
                                + "\"image\":\"busybox\",\"command\":[\"true\"]}],\"nodeSelector\":{\"a\":\"b\"}")
                .replace(
                        "\"name\":\"named-fields\"",
                        "\"name\":\"named-fields\",\"annotations\":{\"serving.kserve.io/metrics\":\"cpu\","
                                + "\"serving.kserve.io/targetUtilizationPercentage\":\"80\","
                                + "\"serving.kserve.io/gpu-resource-types\":\"x.com/y\","
                                + "\"serving.kserve.io/enable-prometheus-scraping\":\"true\"}");
        HttpResponse<String> made = server.send("POST", server.controlPort, ControlledServer.SERVICES, service);
        assertThat(made.statusCode()).as(made.body()).isEqualTo(201);
        String condition = ControlledServer.condition(
                        server.ready(ControlledServer.SERVICES + "/named-fields"), "FieldsWithoutEffect")
                .path("message")
                .asText();
        for (String field : new String[] {
            "spec.predictor.model.runtimeVersion",
            "spec.predictor.model.env: COLOR",
            "spec.predictor.automountServiceAccountToken",
            "spec.predictor.initContainers",
            "the annotation serving.kserve.io/metrics",
            "the annotation serving.kserve.io/targetUtilizationPercentage",
            "the annotation serving.kserve.io/gpu-resource-types",
            "the annotation serving.kserve.io/enable-prometheus-scraping",
            "spec.predictor.nodeSelector"
        }) {
            assertThat(made.headers().allValues("warning"))
                    .filteredOn(one -> one.contains(field + " has no effect"))
                    .as(field)
                    .hasSize(1);
            assertThat(condition).contains(field + " has no effect");
        }
    }

    @Test
    void aRequestWithoutInputsIsTheClientsFault() throws Exception {
        applied("empty", "\"model\":" + server.model(""));
        String path = "/serving/default/empty/v2/models/empty/";
        HttpResponse<String> infer = server.send("POST", server.port, path + "infer", "{\"inputs\":[]}");
        assertThat(infer.statusCode()).as(infer.body()).isEqualTo(400);
        assertThat(infer.body()).contains("missing required input");
        HttpResponse<String> generate = server.send("POST", server.port, path + "generate", "{\"text_input\":\"a\"}");
        assertThat(generate.statusCode()).as(generate.body()).isEqualTo(400);
        assertThat(server.send("GET", server.port, "/metrics", "").body())
                .contains("nereid_uncaught_exceptions_total ");
    }

    @Test
    void theHostOfAServiceHasItsOwnPages() throws Exception {
        applied("paged", "\"model\":" + server.model(""));
        applied("unpaged", "\"model\":" + server.model(""));
        server.ok("POST", server.port, "/serving/default/paged/v1/models/paged:predict", ROWS);
        server.ok("POST", server.port, "/serving/default/unpaged/v1/models/unpaged:predict", ROWS);
        assertThat(server.ok("GET", server.port, "/serving/default/paged/", "")
                        .path("status")
                        .asText())
                .isEqualTo("alive");
        HttpResponse<String> page = server.send("GET", server.port, "/serving/default/paged/metrics", "");
        assertThat(page.statusCode()).as(page.body()).isEqualTo(200);
        assertThat(page.body())
                .contains("# TYPE nv_inference_request_success counter\n", "model=\"default/paged-predictor-00001\"")
                .doesNotContain("unpaged", "nereid_connections");
    }

    private void trained(String name, String uri, String memory) throws Exception {
        server.ok("POST", server.controlPort, ControlledServer.TRAINED, """
                {"apiVersion":"serving.kserve.io/v1alpha1","kind":"TrainedModel","metadata":{"name":"NAME"},
                "spec":{"inferenceService":"many","model":{"framework":"xgboost","storageUri":"URI","memory":"MEMORY"}}}
                """.replace("NAME", name)
                .replace("URI", uri)
                .replace("MEMORY", memory));
    }

    private void moveFirst(String uri) throws Exception {
        server.ok(
                "PATCH",
                server.controlPort,
                ControlledServer.TRAINED + "/first",
                "{\"spec\":{\"model\":{\"storageUri\":\"" + uri + "\"}}}",
                "content-type",
                MERGE);
    }

    private JsonNode trainedUntil(String name, String status, String reason) throws Exception {
        return server.until(ControlledServer.TRAINED + "/" + name, one -> {
            JsonNode ready = ControlledServer.condition(one, "Ready");
            return ready.path("status").asText().equals(status)
                    && ready.path("reason").asText("").equals(reason);
        });
    }

    @Test
    void aServiceWithManyModelsServesEachUnderItsName() throws Exception {
        trained("first", server.modelUri(), "256Mi");
        trainedUntil("first", "False", "InferenceServiceNotFound");
        applied(
                "many",
                "\"model\":{\"modelFormat\":{\"name\":\"xgboost\"},\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}}");
        JsonNode first = trainedUntil("first", "True", "");
        assertThat(first.at("/status/url").asText())
                .startsWith("http://many-default.")
                .endsWith("/v1/models/first:predict");
        trained("second", server.modelUri(), "512Mi");
        trainedUntil("second", "True", "");
        String path = "/serving/default/many/v1/models/";
        for (String name : new String[] {"first", "second"}) {
            JsonNode answer = server.ok("POST", server.port, path + name + ":predict", ROWS);
            assertThat(answer.path("predictions")).hasSize(1);
        }
        trained("third", server.modelUri(), "900Mi");
        trainedUntil("third", "False", "MemoryResourceNotAvailable");
        trained("broken", server.modelUri().replace("stump", "nothing"), "1Mi");
        trainedUntil("broken", "False", "ModelLoadFailed");
        assertThat(server.send("POST", server.port, path + "third:predict", ROWS)
                        .statusCode())
                .isEqualTo(404);
        HttpResponse<String> changed = server.send(
                "PATCH",
                server.controlPort,
                ControlledServer.TRAINED + "/first",
                "{\"spec\":{\"model\":{\"memory\":\"1Mi\"}}}",
                "content-type",
                MERGE);
        assertThat(changed.statusCode()).isEqualTo(422);
        assertThat(changed.body()).contains("spec.model.memory", "cannot be changed");

        // Files that cannot be loaded leave the former in place, and the status says so.
        Path good = Path.of(URI.create(server.modelUri()));
        Path garbled = Files.createDirectories(good.resolveSibling("garbled"));
        Files.writeString(garbled.resolve("model.json"), "{\"learner\": 1}");
        moveFirst(garbled.toUri().toString());
        assertThat(ControlledServer.condition(trainedUntil("first", "False", "ModelLoadFailed"), "Ready")
                        .path("message")
                        .asText())
                .endsWith("; the former model serves on");
        server.ok("POST", server.port, path + "first:predict", ROWS);
        moveFirst(server.modelUri());
        trainedUntil("first", "True", "");

        server.ok("DELETE", server.controlPort, ControlledServer.TRAINED + "/second", "");
        trainedUntil("third", "False", "MemoryResourceNotAvailable");
        server.ok("DELETE", server.controlPort, ControlledServer.SERVICES + "/many", "");
        for (int i = 0; i < 400; i++) {
            if (server.ok("GET", server.controlPort, ControlledServer.TRAINED, "")
                    .path("items")
                    .isEmpty()) {
                return;
            }
            Object unused = headers.poll(50, TimeUnit.MILLISECONDS);
        }
        throw new AssertionError("the models of a deleted service are there");
    }
}
