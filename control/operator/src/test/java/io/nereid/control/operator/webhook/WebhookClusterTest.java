// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.nereid.base.Clock;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.operator.certificate.CertificateKeeper;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** A real API server asks the webhook, with the certificate that the keeper has made. */
@Execution(ExecutionMode.CONCURRENT)
class WebhookClusterTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String OPERATOR = "nereid";

    /** What KServe refuses, by its code: the webhook's 403, and the schema's 422. */
    private static final Map<String, Integer> AS_KSERVE = Map.ofEntries(
            Map.entry("collocated/InferenceService/stored", 403),
            Map.entry("kn-refused/InferenceService/canary", 403),
            Map.entry("kn-refused/InferenceService/cpu", 403),
            Map.entry("kn-refused/InferenceService/rps", 403),
            Map.entry("kn-refused/InferenceService/strategy", 403),
            Map.entry("logger/InferenceService/badmode", 422),
            Map.entry("refused/InferenceService/1digit", 403),
            Map.entry("refused/InferenceService/dot.ted", 403),
            Map.entry("refused/InferenceService/named", 403),
            // KServe's defaulter fails with 500
            Map.entry("refused/InferenceService/nothing", 403),
            // KServe's defaulter refuses the type with 400 and fails without a spec with 500
            Map.entry("refused/InferenceService/type", 422),
            Map.entry("refused/InferenceService/nospec", 422),
            Map.entry("runtime-refused/ServingRuntime/uneven", 403),
            Map.entry("runtime-refused/ServingRuntime/workerless", 403));

    /** What KServe takes and fails at later, and is refused here. */
    private static final Map<String, Integer> EARLIER = Map.of(
            // a model without a format: KServe reports that no runtime serves it
            "refused/InferenceService/noformat", 422,
            // 200 percent
            "refused/InferenceService/canary", 403,
            // an attack that the explainer does not have, and so does not start with
            "explainer-art/InferenceService/type", 403,
            // a scheme that no storage initializer has: KServe's reconciliation fails with an event
            "secret-azure/InferenceService/abfs", 403);

    @TempDir
    static Path directory;

    private static TestCluster cluster;
    private static ClusterClient client;
    private static CertificateKeeper keeper;
    private static Webhook webhook;

    @BeforeAll
    static void start() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        cluster = TestCluster.start(directory.resolve("cluster"));
        cluster.define(CustomResourceDefinitions.all().stream()
                .map(ObjectNode::toString)
                .toList());
        client = new ClusterClient(cluster.client());
        namespace(OPERATOR);
        mode("Standard");
        int port = free();
        webhook = new Webhook(client, OPERATOR, new WebhookOptions(port, OPERATOR, condition -> {}));
        webhook.start();
        List<String> hosts = new ArrayList<>(CertificateKeeper.hosts(WebhookOptions.SERVICE, OPERATOR));
        hosts.add("127.0.0.1");
        Path configuration = directory.resolve("webhook.json");
        Files.writeString(configuration, """
                {"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"nereid"},
                "webhooks":[{"name":"validation.nereid.io","admissionReviewVersions":["v1"],"sideEffects":"None",
                "failurePolicy":"Ignore","timeoutSeconds":5,"clientConfig":{"url":"https://127.0.0.1:PORT/validate"},
                "rules":[{"apiGroups":["serving.kserve.io"],"apiVersions":["*"],"operations":["CREATE","UPDATE","DELETE"],"resources":["*"]}]}]}
                """.replace("PORT", Integer.toString(port)));
        cluster.kubectl("apply", "-f", configuration.toString());
        keeper = new CertificateKeeper(client, Clock.system(), OPERATOR, OPERATOR, hosts);
        keeper.start();
        refusing();
    }

    private static int free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    /** Waits until the API server asks the webhook, which it ignores while it does not trust it. */
    private static void refusing() throws Exception {
        namespace("waiting");
        ObjectNode bad = (ObjectNode) JSON.readTree("""
                {"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"1ris"},
                "spec":{"predictor":{"sklearn":{"storageUri":"gs://b"}}}}
                """);
        refusing(() -> create(ResourceKinds.INFERENCE_SERVICE, "waiting", bad, "&dryRun=All"));
    }

    private interface Request {
        JsonNode send() throws IOException;
    }

    private static void refusing(Request request) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (System.nanoTime() < end) {
            try {
                JsonNode taken = request.send();
                assertThat(taken.path("kind").asText()).isEqualTo("InferenceService");
            } catch (KubernetesClientException e) {
                assertThat(e.getCode()).isEqualTo(403);
                assertThat(e.getMessage()).contains("validation.nereid.io");
                return;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
        }
        throw new AssertionError("the webhook refused nothing for a minute: "
                + cluster.kubectl("get", "validatingwebhookconfiguration", "nereid", "-o", "yaml"));
    }

    @AfterAll
    static void stop() {
        for (AutoCloseable one : new AutoCloseable[] {webhook, keeper, cluster}) {
            try {
                if (one != null) {
                    one.close();
                }
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
    }

    private static void mode(String mode) throws IOException {
        Path config = directory.resolve("config.json");
        Files.writeString(config, """
                {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"inferenceservice-config","namespace":"nereid"},
                "data":{"deploy":"{\\"defaultDeploymentMode\\": \\"MODE\\"}"}}
                """.replace("MODE", mode));
        cluster.kubectl("apply", "-f", config.toString());
    }

    private static void namespace(String name) {
        try {
            cluster.client().raw("/api/v1/namespaces", "POST", "{\"metadata\":{\"name\":\"" + name + "\"}}");
        } catch (KubernetesClientException e) {
            assertThat(e.getCode()).isEqualTo(409);
        }
    }

    private static String path(ResourceKind kind, String namespace) {
        return "/apis/" + kind.apiVersion() + (kind.namespaced() ? "/namespaces/" + namespace : "") + "/"
                + kind.plural();
    }

    private static JsonNode create(ResourceKind kind, String namespace, ObjectNode resource, String query)
            throws IOException {
        ObjectNode sent = resource.deepCopy();
        if (kind.namespaced()) {
            sent.withObjectProperty("metadata").put("namespace", namespace);
        }
        return JSON.readTree(cluster.client()
                .raw(path(kind, namespace) + "?fieldValidation=Ignore" + query, "POST", sent.toString()));
    }

    @Test
    void whatKServeRefusesIsRefusedAndWhatItTakesIsTakenUnchanged() throws Exception {
        Map<String, Integer> refused = new TreeMap<>();
        Map<String, String> messages = new TreeMap<>();
        List<Path> files;
        try (Stream<Path> all = Files.list(TestCluster.kserve().resolve("inputs"))) {
            files = all.filter(one -> one.toString().endsWith(".yaml")).sorted().toList();
        }
        for (Path input : files) {
            String name = input.getFileName().toString().replace(".yaml", "");
            namespace(name);
            JsonNode tree = ManifestReader.parse(Files.readString(input), name).get(0);
            List<JsonNode> objects = new ArrayList<>();
            tree.path("objects").forEach(objects::add);
            for (String steps : List.of("pendingSteps", "steps")) {
                tree.path(steps).forEach(step -> step.path("create").forEach(objects::add));
            }
            for (JsonNode one : objects) {
                ResourceKind kind = ResourceKinds.byKind(
                        one.path("apiVersion").asText(), one.path("kind").asText());
                if (kind == null || !kind.group().equals(ResourceKinds.SERVING)) {
                    continue;
                }
                ObjectNode sent = (ObjectNode) one;
                String mode = "serving.kserve.io/deploymentMode";
                ObjectNode annotations = sent.withObjectProperty("metadata").withObjectProperty("annotations");
                if (name.startsWith("kn-") && !annotations.has(mode)) {
                    annotations.put(mode, "Knative");
                }
                String key = name + "/" + kind.kind() + "/"
                        + one.path("metadata").path("name").asText();
                try {
                    JsonNode stored = create(kind, name, sent, "");
                    assertThat(stored.path("metadata").path("annotations"))
                            .as(key)
                            .isEqualTo(annotations.isEmpty() ? stored.path("nothing") : annotations);
                } catch (KubernetesClientException e) {
                    if (e.getCode() != 409) {
                        refused.put(key, e.getCode());
                        messages.put(key, e.getStatus().getMessage());
                    }
                }
            }
        }
        Map<String, Integer> expected = new TreeMap<>(AS_KSERVE);
        expected.putAll(EARLIER);
        assertThat(refused).as(messages.toString()).containsExactlyInAnyOrderEntriesOf(expected);
        assertThat(messages.get("refused/InferenceService/1digit"))
                .startsWith("admission webhook \"validation.nereid.io\" denied the request: InferenceService 1digit is"
                        + " invalid");
    }

    private static ObjectNode cache(ResourceKind kind, String name, String uri, String group) throws IOException {
        return (ObjectNode) JSON.readTree("{\"apiVersion\":\"serving.kserve.io/v1alpha1\",\"kind\":\"" + kind.kind()
                + "\",\"metadata\":{\"name\":\"" + name + "\"},\"spec\":{\"sourceModelUri\":\"" + uri
                + "\",\"modelSize\":\"1Gi\",\"nodeGroups\":[\"" + group + "\"]}}");
    }

    private static void assertRefused(Request request, String why) {
        assertThatThrownBy(request::send)
                .isInstanceOfSatisfying(
                        KubernetesClientException.class,
                        e -> assertThat(e.getCode()).isEqualTo(403))
                .hasMessageContaining(why);
    }

    @Test
    void cachesOfModelsAreCheckedAndKeptWhileServicesUseThem() throws Exception {
        namespace("cached");
        ResourceKind kind = ResourceKinds.LOCAL_MODEL_CACHE;
        ResourceKind own = ResourceKinds.LOCAL_MODEL_NAMESPACE_CACHE;
        ObjectNode group = (ObjectNode) JSON.readTree("""
                {"apiVersion":"serving.kserve.io/v1alpha1","kind":"LocalModelNodeGroup","metadata":{"name":"checked"},
                "spec":{"storageLimit":"1Gi","persistentVolumeSpec":{"nfs":{"server":"a","path":"/b"}},"persistentVolumeClaimSpec":{}}}
                """);
        assertRefused(
                () -> create(ResourceKinds.LOCAL_MODEL_NODE_GROUP, "", group, ""),
                "spec.persistentVolumeSpec: expected hostPath.path or local.path");
        ((ObjectNode) group.path("spec"))
                .putObject("persistentVolumeSpec")
                .putObject("hostPath")
                .put("path", "/models");
        JsonNode made = create(ResourceKinds.LOCAL_MODEL_NODE_GROUP, "", group, "");
        assertThat(made.path("spec")).isEqualTo(group.path("spec"));

        ObjectNode stored = (ObjectNode) create(kind, "", cache(kind, "checked", "gs://checked/iris", "checked"), "");
        assertRefused(
                () -> create(kind, "", cache(kind, "second", "gs://checked/iris", "checked"), ""),
                "the LocalModelCache checked has the sourceModelUri gs://checked/iris already");
        assertRefused(
                () -> create(own, "cached", cache(own, "own", "gs://checked/iris", "missing"), ""),
                "there is no LocalModelNodeGroup missing");
        ObjectNode moved = stored.deepCopy();
        ((ObjectNode) moved.path("spec")).put("sourceModelUri", "gs://checked/other");
        assertRefused(
                () -> JSON.readTree(cluster.client().raw(path(kind, "") + "/checked", "PUT", moved.toString())),
                "spec.sourceModelUri: cannot be changed");

        ObjectNode service = (ObjectNode) JSON.readTree("""
                {"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"iris"},
                "spec":{"predictor":{"sklearn":{"storageUri":"gs://checked/iris"}}}}
                """);
        create(ResourceKinds.INFERENCE_SERVICE, "cached", service, "");
        stored.set("status", JSON.readTree("{\"inferenceServices\":[{\"namespace\":\"cached\",\"name\":\"iris\"}]}"));
        cluster.client().raw(path(kind, "") + "/checked/status", "PUT", stored.toString());
        Request deletion = () -> JSON.readTree(cluster.client().raw(path(kind, "") + "/checked", "DELETE", null));
        assertRefused(deletion, "LocalModelCache checked is used by the InferenceServices cached/iris");
        cluster.kubectl("delete", "isvc", "iris", "-n", "cached");
        assertThat(deletion.send().path("status").asText()).isEqualTo("Success");
    }

    @Test
    void aChangedConfigMapCountsAtOnce() throws Exception {
        namespace("modes");
        ObjectNode service = (ObjectNode) JSON.readTree("""
                {"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"iris"},
                "spec":{"predictor":{"sklearn":{"storageUri":"gs://b"}},"canary":[{"trafficPercent":10,"predictor":{"name":"next","sklearn":{"storageUri":"gs://c"}}}]}}
                """);
        create(ResourceKinds.INFERENCE_SERVICE, "modes", service, "&dryRun=All");
        mode("Knative");
        try {
            refusing(() -> create(ResourceKinds.INFERENCE_SERVICE, "modes", service, "&dryRun=All"));
        } finally {
            mode("Standard");
        }
    }

    @Test
    void theBundleAndTheSecretComeBackAndAreNotWrittenWithoutNeed() throws Exception {
        String bundle = "jsonpath={.webhooks[0].clientConfig.caBundle}";
        String version = "jsonpath={.metadata.resourceVersion}";
        String trusted = cluster.kubectl("get", "validatingwebhookconfiguration", "nereid", "-o", bundle);
        assertThat(trusted).isNotEmpty();
        assertThat(cluster.kubectl(
                        "get", "secret", CertificateKeeper.SECRET, "-n", OPERATOR, "-o", "jsonpath={.data.ca\\.crt}"))
                .isEqualTo(trusted);
        String before = cluster.kubectl("get", "secret", CertificateKeeper.SECRET, "-n", OPERATOR, "-o", version);
        List<String> hosts = new ArrayList<>(CertificateKeeper.hosts("nereid-webhook", OPERATOR));
        hosts.add("127.0.0.1");
        try (CertificateKeeper other = new CertificateKeeper(client, Clock.system(), OPERATOR, OPERATOR, hosts)) {
            other.maintain();
            assertThat(cluster.kubectl("get", "secret", CertificateKeeper.SECRET, "-n", OPERATOR, "-o", version))
                    .isEqualTo(before);
        }
    }
}
