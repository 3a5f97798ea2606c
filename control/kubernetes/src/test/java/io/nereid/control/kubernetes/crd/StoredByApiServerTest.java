// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.crd;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A real API server with the definitions: it takes what KServe takes, and stores it as it was written. */
class StoredByApiServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * What the API server refuses without a webhook, by its code. Where KServe takes it, there is a reason.
     */
    private static final Map<String, Integer> REFUSED = Map.of(
            "logger/InferenceService/badmode", 422,
            "refused/InferenceService/type", 422,
            "refused/InferenceService/nospec", 422,
            // KServe stores a model without a format and then reports that no runtime serves it.
            "refused/InferenceService/noformat", 422);

    @TempDir
    static Path directory;

    private static TestCluster cluster;

    @BeforeAll
    static void start() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        cluster = TestCluster.start(directory.resolve("cluster"));
        ArrayNode all = JSON.createArrayNode();
        all.addAll(CustomResourceDefinitions.all());
        ObjectNode list = JSON.createObjectNode().put("apiVersion", "v1").put("kind", "List");
        list.set("items", all);
        Path file = directory.resolve("definitions.json");
        Files.writeString(file, list.toString());
        cluster.kubectl("create", "-f", file.toString());
        established();
        // The annotation of the last applied configuration holds each object a second time.
        assertThat(cluster.kubectl("apply", "-f", file.toString())).doesNotContain("invalid");
        assertThat(cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", file.toString()))
                .contains("inferenceservices.serving.kserve.io serverside-applied");
    }

    private static void established() throws IOException {
        cluster.define(CustomResourceDefinitions.all().stream()
                .map(ObjectNode::toString)
                .toList());
        assertThat(cluster.kubectl(
                        "get",
                        "crd",
                        "-o",
                        "jsonpath={.items[*].status.conditions[?(@.type=='NonStructuralSchema')].message}"))
                .isBlank();
    }

    @AfterAll
    static void stop() {
        if (cluster != null) {
            cluster.close();
        }
    }

    private static String path(ResourceKind kind, String namespace) {
        return "/apis/" + kind.apiVersion() + (kind.namespaced() ? "/namespaces/" + namespace : "") + "/"
                + kind.plural();
    }

    private static void namespace(String name) {
        String body = "{\"metadata\":{\"name\":\"" + name + "\"}}";
        try {
            cluster.client().raw("/api/v1/namespaces", "POST", body);
        } catch (KubernetesClientException e) {
            assertThat(e.getCode()).isEqualTo(409);
        }
    }

    private static ObjectNode create(ResourceKind kind, String namespace, ObjectNode resource) throws IOException {
        ObjectNode sent = resource.deepCopy();
        if (kind.namespaced()) {
            sent.withObjectProperty("metadata").put("namespace", namespace);
        }
        String answer =
                cluster.client().raw(path(kind, namespace) + "?fieldValidation=Ignore", "POST", sent.toString());
        return (ObjectNode) JSON.readTree(answer);
    }

    private static ResourceKind kind(ObjectNode resource) {
        ResourceKind kind = ResourceKinds.byKind(
                resource.path("apiVersion").asText(), resource.path("kind").asText());
        return kind != null && kind.group().equals(ResourceKinds.SERVING) ? kind : null;
    }

    private static List<Path> files(Path folder) throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.filter(file -> file.toString().endsWith(".yaml"))
                    .sorted()
                    .toList();
        }
    }

    private static List<ObjectNode> read(Path file) throws IOException {
        return ManifestReader.parse(Files.readString(file), file.getFileName().toString());
    }

    @Test
    void whatKServeTakesIsStoredAsItWasWritten() throws Exception {
        Map<String, Integer> refused = new TreeMap<>();
        List<String> changed = new ArrayList<>();
        for (Path file : files(TestCluster.kserve().resolve("inputs"))) {
            String name = file.getFileName().toString().replace(".yaml", "");
            namespace(name);
            ObjectNode input = read(file).get(0);
            List<JsonNode> objects = new ArrayList<>();
            input.path("objects").forEach(objects::add);
            for (String steps : List.of("pendingSteps", "steps")) {
                input.path(steps).forEach(step -> step.path("create").forEach(objects::add));
            }
            for (JsonNode one : objects) {
                ObjectNode resource = (ObjectNode) one;
                ResourceKind kind = kind(resource);
                if (kind == null) {
                    continue;
                }
                String key = name + "/" + kind.kind() + "/"
                        + resource.path("metadata").path("name").asText();
                try {
                    ObjectNode stored = create(kind, name, resource);
                    if (!stored.path("spec").equals(resource.path("spec"))) {
                        changed.add(key);
                    }
                } catch (KubernetesClientException e) {
                    // A step creates a service anew that an earlier one has deleted.
                    if (e.getCode() != 409) {
                        refused.put(key, e.getCode());
                    }
                }
            }
        }
        assertThat(refused).containsExactlyInAnyOrderEntriesOf(REFUSED);
        // It has a field that is none of the predictor's.
        assertThat(changed).containsExactly("refused/InferenceService/unknown");
    }

    @Test
    void whatKServeHasStoredIsTakenWithoutAChange() throws Exception {
        namespace("stored");
        int number = 0;
        for (ObjectNode resource : read(TestCluster.kserve().resolve("stored.yaml"))) {
            ResourceKind kind = kind(resource);
            ObjectNode metadata = resource.withObjectProperty("metadata");
            metadata.put("name", "s" + number++);
            metadata.remove(List.of("finalizers", "ownerReferences"));
            String what = "case " + metadata.path("namespace") + " " + resource.path("spec");
            ObjectNode stored;
            try {
                stored = create(kind, "stored", resource);
            } catch (KubernetesClientException e) {
                throw new AssertionError(what, e);
            }
            assertThat(stored.path("spec")).as(what).isEqualTo(resource.path("spec"));
        }
        assertThat(number).isGreaterThan(150);
    }

    @Test
    void theExamplesAreTaken() throws Exception {
        for (Path file : files(TestCluster.root().resolve("examples/control"))) {
            String namespace = file.getFileName().toString().replace(".yaml", "");
            namespace(namespace);
            for (ObjectNode resource : read(file)) {
                ResourceKind kind = kind(resource);
                if (kind != null) {
                    assertThat(create(kind, namespace, resource).path("spec"))
                            .as(file.toString())
                            .isEqualTo(resource.path("spec"));
                }
            }
        }
        assertThat(cluster.kubectl("get", "nereid", "-n", "iris", "-o", "name")).contains("inferenceservice");
    }

    @Test
    void kubectlShowsTheColumnsOfKServeAndRefusesUnknownFields() throws Exception {
        namespace("columns");
        Path file = directory.resolve("iris.yaml");
        Files.writeString(file, """
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris, namespace: columns}
                spec:
                  predictor:
                    model: {modelFormat: {name: sklearn}, resources: , storageUri: , env: [{name: A, value: }]}
                """);
        cluster.kubectl("apply", "--server-side", "-f", file.toString());
        assertThat(cluster.kubectl("get", "isvc", "-n", "columns"))
                .contains(
                        "NAME",
                        "URL",
                        "READY",
                        "PREV",
                        "LATEST",
                        "PREVROLLEDOUTREVISION",
                        "LATESTREADYREVISION",
                        "AGE");
        Files.writeString(file, Files.readString(file).replace("storageUri: ", "storageUrl: gs://b"));
        assertThatThrownBy(() -> cluster.kubectl("apply", "-f", file.toString()))
                .hasMessageContaining("unknown field \"spec.predictor.model.storageUrl\"");
    }

    @Test
    void severalManagersOwnTheElementsOfOneList() throws Exception {
        namespace("managers");
        apply("one", "{\"name\":\"A\",\"value\":\"1\"}");
        apply("other", "{\"name\":\"B\",\"value\":\"2\"}");
        assertThat(cluster.kubectl(
                        "get",
                        "isvc",
                        "shared",
                        "-n",
                        "managers",
                        "-o",
                        "jsonpath={.spec.predictor.model.env[*].name}"))
                .isEqualTo("A B");
    }

    private static void apply(String manager, String variable) throws IOException {
        Path file = directory.resolve(manager + ".json");
        Files.writeString(file, """
                {"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"shared","namespace":"managers"},
                "spec":{"predictor":{"model":{"modelFormat":{"name":"sklearn"},"env":[VARIABLE]}}}}
                """.replace("VARIABLE", variable));
        cluster.kubectl("apply", "--server-side", "--field-manager=" + manager, "-f", file.toString());
    }

    @Test
    void aStatusIsWrittenByItsSubresourceOnly() throws Exception {
        namespace("status");
        ObjectNode service = (ObjectNode) JSON.readTree("""
                {"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"iris"},
                "spec":{"predictor":{"sklearn":{"storageUri":"gs://b"}}},"status":{"url":"http://written"}}
                """);
        ObjectNode stored = create(ResourceKinds.INFERENCE_SERVICE, "status", service);
        assertThat(stored.has("status")).isFalse();
        stored.putObject("status").put("url", "http://iris").putObject("future").put("x", 1);
        String path = path(ResourceKinds.INFERENCE_SERVICE, "status") + "/iris/status";
        String answer = cluster.client().raw(path, "PUT", stored.toString());
        assertThat(JSON.readTree(answer).path("status")).isEqualTo(stored.path("status"));
        assertThat(JSON.readTree(answer).path("metadata").path("generation").asInt())
                .isEqualTo(1);
    }
}
