// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpServer;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** TrainedModels with a real API server and the operator: what the pods are given, and what the statuses say. */
class TrainedModelsClusterTest {
    @TempDir
    static Path directory;

    private static OperatorCluster fixture;
    private static ClusterClient client;
    private static KubernetesClient own;
    private static KubernetesClient leases;
    private static Operator operator;

    @BeforeAll
    static void start() throws Exception {
        fixture = OperatorCluster.start(directory);
        client = fixture.client();
        for (ObjectNode runtime : BuiltInRuntimes.ofEngine("nereid:test")) {
            ObjectNode unused = client.apply(ResourceKinds.CLUSTER_SERVING_RUNTIME, runtime);
        }
        own = fixture.cluster().connect();
        leases = fixture.cluster().connect();
        operator = new Operator(
                new OperatorOptions(HOME, Set.of(), "one", 0, null, null),
                own,
                leases,
                () -> {},
                KnativeModeTest.Loads::new);
        operator.start();
    }

    @AfterAll
    static void stop() {
        if (operator != null) {
            operator.close();
            own.close();
            leases.close();
        }
        if (fixture != null) {
            fixture.close();
        }
    }

    private static @Nullable ObjectNode object(ResourceKind kind, String name) {
        return client.get(kind, "default", name);
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime())
                    .as(() -> what + ": " + client.list(ResourceKinds.TRAINED_MODEL, "default") + ""
                            + client.list(ResourceKinds.INFERENCE_SERVICE, "default"))
                    .isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    private static void model(String name, String service, String uri, String memory) {
        model(name, service, uri, memory, "sklearn");
    }

    private static void model(String name, String service, String uri, String memory, String framework) {
        ObjectNode unused = client.create(
                ResourceKinds.TRAINED_MODEL,
                tree("{'apiVersion':'serving.kserve.io/v1alpha1','kind':'TrainedModel','metadata':{'name':'" + name
                        + "','namespace':'default'},'spec':{'inferenceService':'" + service
                        + "','model':{'framework':'" + framework + "','storageUri':'" + uri + "','memory':'" + memory
                        + "'}}}"));
    }

    private static JsonNode condition(String name, String type) {
        ObjectNode model = object(ResourceKinds.TRAINED_MODEL, name);
        if (model != null) {
            for (JsonNode one : model.path("status").path("conditions")) {
                if (one.path("type").asText().equals(type)) {
                    return one;
                }
            }
        }
        return MissingNode.getInstance();
    }

    private static boolean is(String name, String type, String status) {
        return condition(name, type).path("status").asText().equals(status);
    }

    private static String models(String service) {
        ObjectNode map = object(ResourceKinds.CONFIG_MAP, "modelconfig-" + service + "-0");
        return map == null ? "" : map.path("data").path("models.json").asText();
    }

    private static String entry(String name, String uri, String memory) {
        return tree("{'modelName':'" + name + "','modelSpec':{'storageUri':'" + uri
                        + "','framework':'sklearn','memory':'" + memory + "'}}")
                .toString();
    }

    /** The server of a pool's pod, at an address that Kubernetes takes: not a loopback one. */
    private static final class PodServer implements AutoCloseable {
        final HttpServer http;
        final Set<String> loaded = ConcurrentHashMap.newKeySet();

        PodServer() throws IOException {
            http = HttpServer.create(new InetSocketAddress(0), 16);
            http.createContext("/v2/repository/", exchange -> {
                String path = exchange.getRequestURI().getPath();
                String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                int code = 200;
                if (path.endsWith("/load") && body.contains("/bad")) {
                    code = 400;
                } else if (path.endsWith("/load")) {
                    loaded.add(path.split("/")[4] + " "
                            + tree(body).at("/parameters/storage_uri").asText());
                } else if (path.endsWith("/unload")) {
                    loaded.removeIf(one -> one.startsWith(path.split("/")[4] + " "));
                }
                byte[] answer = (code == 400 ? "{'error':'no model in it'}" : path.endsWith("/index") ? "[]" : "{}")
                        .replace('\'', '"')
                        .getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(code, answer.length);
                exchange.getResponseBody().write(answer);
                exchange.close();
            });
            http.start();
        }

        private static String address() throws IOException {
            for (NetworkInterface one : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                for (InetAddress address : Collections.list(one.getInetAddresses())) {
                    if (address instanceof Inet4Address
                            && !address.isLoopbackAddress()
                            && !address.isLinkLocalAddress()) {
                        return address.getHostAddress();
                    }
                }
            }
            return "";
        }

        /** Makes it a pod of a pool. */
        void join(String pool) throws IOException {
            String address = address();
            assumeTrue(!address.isEmpty(), "this machine has no address but loopback ones");
            ObjectNode unused = client.create(
                    ClusterKinds.ENDPOINT_SLICE,
                    tree("{'apiVersion':'discovery.k8s.io/v1','kind':'EndpointSlice','metadata':{'name':'by-hand',"
                            + "'namespace':'default','labels':{'nereid.io/pool-of':'" + pool + "'}},"
                            + "'addressType':'IPv4','ports':[{'name':'http','port':"
                            + http.getAddress().getPort() + "}],'endpoints':[{'addresses':['" + address
                            + "'],'conditions':{'ready':true}}]}"));
        }

        @Override
        public void close() {
            http.stop(0);
        }
    }

    private static void shared(String name) {
        ObjectNode unused = client.create(
                ResourceKinds.INFERENCE_SERVICE,
                tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService','metadata':{'name':'" + name
                        + "','namespace':'default','annotations':{'nereid.io/placement':'shared'}},'spec':{'predictor':"
                        + "{'model':{'modelFormat':{'name':'sklearn'},'runtime':'kserve-nereid'}}}}"));
    }

    @Test
    void theModelsOfAServiceWithSharedPlacementAreModelsOfThePool() throws IOException {
        try (PodServer pod = new PodServer()) {
            shared("pooled");
            shared("twin");
            String pool = "nereid-pool-kserve-nereid";
            until("the pool is made", () -> object(ClusterKinds.DEPLOYMENT, pool) != null);
            assertThat(object(ClusterKinds.DEPLOYMENT, pool).toString()).doesNotContain("--trained-models");
            pod.join(pool);
            model("small", "pooled", "gs://z/small", "1Mi");
            model("other", "twin", "gs://z/other", "1Mi");
            model("wrong", "pooled", "gs://z/bad", "1Mi");
            model("vast", "pooled", "gs://z/vast", "900Gi");
            until("the models are ready", () -> is("small", "Ready", "True") && is("other", "Ready", "True"));
            assertThat(pod.loaded).contains("small gs://z/small", "other gs://z/other");
            JsonNode status = Objects.requireNonNull(object(ResourceKinds.TRAINED_MODEL, "small"))
                    .path("status");
            assertThat(status.path("url").asText())
                    .isEqualTo("http://pooled-default.example.com/v1/models/small:predict");
            assertThat(status.path("address").path("url").asText())
                    .isEqualTo("http://pooled.default.svc.cluster.local/v1/models/small:predict");
            assertThat(object(ClusterKinds.DEPLOYMENT, "pooled-predictor-00001-deployment"))
                    .isNull();
            JsonNode service = Objects.requireNonNull(object(ClusterKinds.SERVICE, "small-trainedmodel-private"))
                    .path("metadata");
            assertThat(service.path("ownerReferences").path(0).path("kind").asText())
                    .isEqualTo("TrainedModel");
            assertThat(service.path("annotations").path("nereid.io/revision").asText())
                    .contains("\"service\":\"pooled\"", "\"model\":\"small\"");
            assertThat(Objects.requireNonNull(object(ClusterKinds.SERVICE, "pooled-predictor-00001-private"))
                            .toString())
                    .contains("\\\"byModel\\\":true");
            until("the one that cannot be loaded says so", () -> is("wrong", "Ready", "False"));
            assertThat(condition("wrong", "Ready").path("message").asText()).contains("no model in it");
            until("no pod has memory for it", () -> is("vast", "MemoryResourceAvailable", "False"));
            assertThat(condition("vast", "MemoryResourceAvailable")
                            .path("message")
                            .asText())
                    .contains("waits for memory");

            ObjectNode unused = client.merge(
                    ResourceKinds.TRAINED_MODEL,
                    "default",
                    "small",
                    tree("{'spec':{'model':{'storageUri':'gs://z/small-b'}}}"));
            until("the first moves", () -> pod.loaded.contains("small gs://z/small-b"));
            client.delete(ResourceKinds.TRAINED_MODEL, "default", "other", null);
            until("the one of the other service goes", () -> !pod.loaded.contains("other gs://z/other"));
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "pooled", null);
            until(
                    "models go with their service",
                    () -> object(ResourceKinds.TRAINED_MODEL, "small") == null
                            && object(ResourceKinds.TRAINED_MODEL, "vast") == null
                            && pod.loaded.stream().noneMatch(one -> one.startsWith("small ")));
            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "twin", null);
            until("the pool goes with its last service", () -> object(ClusterKinds.DEPLOYMENT, pool) == null);
        }
    }

    @Test
    void theModelsOfAServiceAreGivenToItsPodsAndGoWithIt() {
        ObjectNode unusedService = client.create(
                ResourceKinds.INFERENCE_SERVICE,
                tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService','metadata':{'name':'parent',"
                        + "'namespace':'default','annotations':{'serving.kserve.io/deploymentMode':'Standard'}},"
                        + "'spec':{'predictor':{'model':{'modelFormat':{'name':'sklearn'},'runtime':'kserve-nereid',"
                        + "'resources':{'requests':{'memory':'1Gi'},'limits':{'memory':'1Gi'}}}}}}"));
        model("first", "parent", "gs://z/one", "256Mi");
        until("the first is ready", () -> is("first", "Ready", "True"));
        ObjectNode first = Objects.requireNonNull(object(ResourceKinds.TRAINED_MODEL, "first"));
        assertThat(first.path("status").path("url").asText())
                .isEqualTo("http://parent-default.example.com/v1/models/first:predict");
        assertThat(first.path("status").path("address").path("url").asText())
                .isEqualTo("http://parent-predictor.default.svc.cluster.local/v1/models/first:predict");
        assertThat(models("parent")).isEqualTo("[" + entry("first", "gs://z/one", "256Mi") + "]");

        ObjectNode deployment = Objects.requireNonNull(object(ClusterKinds.DEPLOYMENT, "parent-predictor"));
        JsonNode pod = deployment.path("spec").path("template").path("spec");
        assertThat(pod.path("containers")).as("no agent").hasSize(1);
        assertThat(pod.path("containers").path(0).path("args").toString())
                .contains("--trained-models=/mnt/configs/models.json")
                .doesNotContain("--model_dir", "--model_name");
        assertThat(pod.path("volumes").findValuesAsText("name")).contains("modelconfig-parent-0");

        model("second", "parent", "gs://z/two", "512Mi");
        until("the second is ready", () -> is("second", "Ready", "True"));
        model("third", "parent", "gs://z/three", "900Mi");
        until("the third has no memory", () -> is("third", "MemoryResourceAvailable", "False"));
        assertThat(condition("third", "Ready").path("reason").asText()).isEqualTo("MemoryResourceNotAvailable");
        assertThat(models("parent"))
                .isEqualTo("[" + entry("first", "gs://z/one", "256Mi") + "," + entry("second", "gs://z/two", "512Mi")
                        + "]");

        ObjectNode unused = client.merge(
                ResourceKinds.TRAINED_MODEL,
                "default",
                "first",
                tree("{'spec':{'model':{'storageUri':'gs://z/one-b'}},"
                        + "'metadata':{'finalizers':['trainedmodel.finalizer']}}"));
        until("the first moves", () -> models("parent").contains("gs://z/one-b"));
        client.delete(ResourceKinds.TRAINED_MODEL, "default", "second", null);
        until("the second goes", () -> !models("parent").contains("second"));

        ObjectNode unusedPlain =
                client.create(ResourceKinds.INFERENCE_SERVICE, OperatorCluster.service("plain", "Standard", ""));
        model("lost", "plain", "gs://z/lost", "1Mi");
        until("a service with a model of its own takes none", () -> is("lost", "IsMMSPredictor", "False"));
        model("strange", "parent", "gs://z/strange", "1Mi", "vision");
        until("its runtime does not support it", () -> is("strange", "FrameworkSupported", "False"));
        assertThat(models("parent")).doesNotContain("strange");
        model("early", "later", "gs://z/early", "1Mi");
        until(
                "a model waits for its service",
                () -> condition("early", "InferenceServiceReady")
                        .path("reason")
                        .asText()
                        .equals("InferenceServiceNotFound"));

        client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "parent", null);
        until(
                "models go with their service, whatever KServe's finalizer",
                () -> object(ResourceKinds.TRAINED_MODEL, "first") == null
                        && object(ResourceKinds.TRAINED_MODEL, "third") == null);
        assertThat(object(ResourceKinds.TRAINED_MODEL, "early")).isNotNull();
    }
}
