// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Services whose predictor is an old block such as {@code sklearn}, written again in each way that clients have. */
@SuppressWarnings("NullAway.Init") // set before each test
class FrameworkBlockTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";
    private static final String MERGE = "application/merge-patch+json";
    private static final String APPLY = "application/apply-patch+yaml";

    @TempDir
    private Path dir;

    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private TestApiServer server;

    @BeforeEach
    void start() {
        server = new TestApiServer(dir);
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private HttpResponse<String> send(String method, String path, String type, String body) throws Exception {
        return http.send(
                HttpRequest.newBuilder(URI.create(server.url() + SERVICES + path))
                        .header("content-type", type)
                        .method(method, HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private JsonNode ok(String method, String path, String type, String body) throws Exception {
        HttpResponse<String> response = send(method, path, type, body);
        assertThat(response.statusCode()).as(response.body()).isBetween(200, 201);
        return JSON.readTree(response.body());
    }

    private static String service(String block, String uri) {
        return "{\"apiVersion\":\"serving.kserve.io/v1beta1\",\"kind\":\"InferenceService\",\"metadata\":{\"name\":\"a\"},"
                + "\"spec\":{\"predictor\":{\"minReplicas\":1,\"" + block + "\":{\"storageUri\":\"" + uri
                + "\",\"resources\":{\"limits\":{\"cpu\":\"2\"}}}}}}";
    }

    private static void stays(String block, JsonNode service, String uri, int generation) {
        JsonNode predictor = service.at("/spec/predictor");
        assertThat(predictor.has(block)).isFalse();
        assertThat(predictor.at("/model/modelFormat/name").asText()).isEqualTo(block);
        assertThat(predictor.at("/model/storageUri").asText()).isEqualTo(uri);
        assertThat(predictor.at("/model/resources/limits/cpu").asText()).isEqualTo("2");
        assertThat(service.at("/metadata/annotations/modelFormat").asText()).isEqualTo(block);
        assertThat(service.at("/metadata/generation").asInt()).isEqualTo(generation);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "sklearn",
                "xgboost",
                "tensorflow",
                "pytorch",
                "triton",
                "onnx",
                "huggingface",
                "pmml",
                "lightgbm",
                "paddle"
            })
    void aServiceWithABlockIsWrittenAgain(String block) throws Exception {
        String first = service(block, "gs://b/m");
        stays(block, ok("POST", "", "application/json", first), "gs://b/m", 1);
        // What kubectl apply sends: the fields of the file that the stored service does not have.
        String again = "{\"spec\":{\"predictor\":{\"" + block
                + "\":{\"storageUri\":\"gs://b/m\",\"resources\":{\"limits\":" + "{\"cpu\":\"2\"}}}}}}";
        stays(block, ok("PATCH", "/a", MERGE, again), "gs://b/m", 1);
        stays(block, ok("PATCH", "/a", MERGE, again.replace("gs://b/m", "gs://b/n")), "gs://b/n", 2);
        // What the client of the resources sends to patch, with its nulls left out, and to replace.
        stays(block, ok("PATCH", "/a", MERGE, service(block, "gs://b/o")), "gs://b/o", 3);
        stays(block, ok("PUT", "/a", "application/json", service(block, "gs://b/o")), "gs://b/o", 3);
        ObjectNode read = (ObjectNode) ok("GET", "/a", "application/json", "");
        read.withObject("/spec/predictor")
                .set(block, JSON.readTree(first).at("/spec/predictor").get(block));
        stays(block, ok("PUT", "/a", "application/json", read.toString()), "gs://b/m", 4);
        String added = "[{\"op\":\"add\",\"path\":\"/spec/predictor/" + block
                + "\",\"value\":{\"storageUri\":\"gs://b/p\",\"resources\":{\"limits\":{\"cpu\":\"2\"}}}}]";
        stays(block, ok("PATCH", "/a", "application/json-patch+json", added), "gs://b/p", 5);
        String forced = "/a?fieldManager=kubectl&force=true";
        stays(block, ok("PATCH", forced, APPLY, service(block, "gs://b/q")), "gs://b/q", 6);
        stays(block, ok("PATCH", forced, APPLY, service(block, "gs://b/q")), "gs://b/q", 6);
    }

    @Test
    void aServiceThatWasAppliedServerSideIsAppliedAgain() throws Exception {
        String apply = "/a?fieldManager=kubectl";
        stays("sklearn", ok("PATCH", apply, APPLY, service("sklearn", "gs://b/m")), "gs://b/m", 1);
        stays("sklearn", ok("PATCH", apply, APPLY, service("sklearn", "gs://b/m")), "gs://b/m", 1);
        stays("sklearn", ok("PATCH", apply, APPLY, service("sklearn", "gs://b/n")), "gs://b/n", 2);
        stays("xgboost", ok("PATCH", apply, APPLY, service("xgboost", "gs://b/n")), "gs://b/n", 3);
    }

    @Test
    void anotherBlockReplacesTheModelThatTheFirstOneBecame() throws Exception {
        ok("POST", "", "application/json", service("sklearn", "gs://b/m"));
        String other =
                "{\"spec\":{\"predictor\":{\"sklearn\":null,\"xgboost\":{\"storageUri\":\"gs://b/x\",\"resources\":"
                        + "{\"limits\":{\"cpu\":\"2\"}}}}}}";
        stays("xgboost", ok("PATCH", "/a", MERGE, other), "gs://b/x", 2);
    }

    @Test
    void whatKserveHadStoredIsAccepted() throws Exception {
        String stored = """
                {"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"a","namespace":"default",
                "annotations":{"modelFormat":"sklearn","serving.kserve.io/deploymentMode":"Standard"},"creationTimestamp":null,
                "finalizers":["inferenceservice.finalizers"]},
                "spec":{"predictor":{"minReplicas":1,"model":{"modelFormat":{"name":"sklearn"},"name":"","protocolVersion":"v1",
                "resources":{"limits":{"cpu":"1","memory":"2Gi"},"requests":{"cpu":"1","memory":"2Gi"}},
                "runtime":"kserve-sklearnserver","storageUri":"gs://b/m"}}},
                "status":{"address":{"url":"http://a.default.svc.cluster.local"},"conditions":[]}}
                """;
        JsonNode created = ok("POST", "", "application/json", stored);
        assertThat(created.at("/spec/predictor/model/runtime").asText()).isEqualTo("kserve-sklearnserver");
        JsonNode applied = ok("PATCH", "/a", MERGE, service("sklearn", "gs://b/m"));
        stays("sklearn", applied, "gs://b/m", 2);
        // The block as KServe's defaulter stored it before there was a model.
        String old = """
                {"spec":{"predictor":{"model":null,"sklearn":{"name":"","protocolVersion":"v1","runtimeVersion":"v0.7.0",
                "resources":{"limits":{"cpu":"2"}},"storageUri":"gs://b/m"}}}}
                """;
        stays("sklearn", ok("PATCH", "/a", MERGE, old), "gs://b/m", 3);
    }

    @Test
    void aModelThatIsChangedBesideABlockIsNamed() throws Exception {
        String both = service("sklearn", "gs://b/m")
                .replace(
                        "\"minReplicas\":1",
                        "\"model\":{\"modelFormat\":{\"name\":\"sklearn\"},\"storageUri\":\"gs://b/x\"}");
        HttpResponse<String> response = send("POST", "", "application/json", both);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(201);
        assertThat(response.headers().allValues("warning"))
                .anyMatch(
                        warning -> warning.contains("spec.predictor.model has no effect: sklearn beside it is served"));
        stays("sklearn", JSON.readTree(response.body()), "gs://b/m", 1);
        response = send("PATCH", "/a", MERGE, service("sklearn", "gs://b/n"));
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        assertThat(response.headers().allValues("warning"))
                .noneMatch(warning -> warning.contains("spec.predictor.model "));
    }

    @Test
    void twoBlocksAreRefused() throws Exception {
        String two = service("sklearn", "gs://b/m")
                .replace("\"minReplicas\":1", "\"xgboost\":{\"storageUri\":\"gs://b/x\"}");
        HttpResponse<String> response = send("POST", "", "application/json", two);
        assertThat(response.statusCode()).isEqualTo(422);
        assertThat(response.body()).contains("has sklearn and xgboost; expected exactly one of them");
    }

    /** The blocks that a service can have are those of this test. */
    @Test
    void theListIsComplete() {
        assertThat(io.nereid.control.api.schema.ResourceSchemas.FRAMEWORKS)
                .containsExactlyInAnyOrderElementsOf(List.of(
                        "sklearn",
                        "xgboost",
                        "tensorflow",
                        "pytorch",
                        "triton",
                        "onnx",
                        "huggingface",
                        "pmml",
                        "lightgbm",
                        "paddle"));
    }
}
