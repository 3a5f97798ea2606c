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
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.localmodel.CachedModels;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.nodeagent.ModelFetcher;
import io.nereid.control.operator.nodeagent.NodeAgent;
import io.nereid.control.operator.nodeagent.NodeAgentOptions;
import io.nereid.testing.kubernetes.FakeNode;
import io.nereid.testing.kubernetes.PodRunner;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Caches of models with a real API server, the operator, and the agents of two nodes whose volumes are folders here. */
class LocalModelsTest {
    @TempDir
    static Path directory;

    private static OperatorCluster fixture;
    private static TestCluster cluster;
    private static ClusterClient client;
    private static FakeNode second;

    /** The bytes of the models in the store; others do not exist. */
    private static final Map<String, Integer> STORE = new ConcurrentHashMap<>(Map.of("gs://zoo/kept", 500));

    /** Opened when the store answers. */
    private static final CountDownLatch OPEN = new CountDownLatch(1);

    @BeforeAll
    static void start() throws Exception {
        fixture = OperatorCluster.start(directory);
        cluster = fixture.cluster();
        client = fixture.client();
        second = new FakeNode(cluster.client(), "node-2", "10.244.1", PodRunner.READY);
        cluster.kubectl("label", "node", "node-1", "accelerator=a10");
    }

    @AfterAll
    static void stop() {
        if (second != null) {
            second.close();
        }
        if (fixture != null) {
            fixture.close();
        }
    }

    private static void fetch(ModelFetcher.Source source, Path to, long most, ModelFetcher.Progress progress) {
        try {
            progress.on(0, -1);
            OPEN.await();
            Integer bytes = STORE.get(source.uri());
            if (bytes == null) {
                throw ServingException.of(ErrorCode.NOT_FOUND, "there is no " + source.uri());
            }
            progress.on(bytes, bytes);
            Files.createDirectories(to);
            Files.write(to.resolve("model.joblib"), new byte[bytes]);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static NodeAgent agent(String node, Path volume, KubernetesClient own) {
        NodeAgent agent = new NodeAgent(
                new NodeAgentOptions(node, "fast", volume, "jobs", Duration.ofSeconds(1), 0),
                own,
                LocalModelsTest::fetch,
                Clock.system());
        agent.start(Duration.ofSeconds(30));
        return agent;
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what + ": " + state()).isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    private static String state() {
        return client.list(ResourceKinds.LOCAL_MODEL_CACHE, null) + " "
                + client.list(ResourceKinds.LOCAL_MODEL_NODE, null) + " "
                + status(ResourceKinds.LOCAL_MODEL_NODE_GROUP, "fast");
    }

    private static JsonNode status(ResourceKind kind, String name) {
        ObjectNode found = client.get(kind, null, name);
        return found == null ? MissingNode.getInstance() : found.path("status");
    }

    private static @Nullable ObjectNode object(ResourceKind kind, @Nullable String namespace, String name) {
        return client.get(kind, namespace, name);
    }

    private static ObjectNode group(String limit) {
        return tree(
                "{'apiVersion':'serving.kserve.io/v1alpha1','kind':'LocalModelNodeGroup','metadata':{'name':'fast'},"
                        + "'spec':{'storageLimit':'" + limit
                        + "','persistentVolumeSpec':{'accessModes':['ReadWriteOnce'],"
                        + "'capacity':{'storage':'1Gi'},'storageClassName':'local','hostPath':{'path':'/models'},"
                        + "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'accelerator',"
                        + "'operator':'In','values':['a10']}]}]}}},'persistentVolumeClaimSpec':{'accessModes':['ReadWriteOnce'],"
                        + "'storageClassName':'local','resources':{'requests':{'storage':'1Gi'}}}}}");
    }

    private static ObjectNode cache(String name, String uri, String size) {
        return tree("{'apiVersion':'serving.kserve.io/v1alpha1','kind':'LocalModelCache','metadata':{'name':'" + name
                + "','finalizers':['localmodel.kserve.io/finalizer']},'spec':{'sourceModelUri':'" + uri
                + "','modelSize':'" + size + "','nodeGroups':['fast']}}");
    }

    private static ObjectNode service(String name, String mode, String uri) {
        ObjectNode service = OperatorCluster.service(name, mode, "");
        ((ObjectNode) service.at("/spec/predictor/model")).put("storageUri", uri);
        return service;
    }

    private static boolean isReady(String name) {
        ObjectNode service = object(ResourceKinds.INFERENCE_SERVICE, "default", name);
        for (JsonNode condition : Objects.requireNonNull(service).path("status").path("conditions")) {
            if (condition.path("type").asText().equals("Ready")) {
                return condition.path("status").asText().equals("True");
            }
        }
        return false;
    }

    /** The writes of the operator so far. */
    private static long writes(Operator operator) throws Exception {
        URI page = URI.create("http://localhost:" + operator.healthPort() + "/metrics");
        return HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(page).build(), HttpResponse.BodyHandlers.ofString())
                .body()
                .lines()
                .filter(line ->
                        line.startsWith("nereid_operator_api_requests_total{") && !line.contains("verb=\"get\""))
                .mapToLong(line -> (long) Double.parseDouble(line.substring(line.indexOf('}') + 2)))
                .sum();
    }

    @Test
    void aModelIsDownloadedToTheNodesOfItsGroupAndServicesStartFromThere() throws Exception {
        CountDownLatch lost = new CountDownLatch(1);
        Path volume = Files.createDirectories(directory.resolve("volume"));
        client.create(ResourceKinds.LOCAL_MODEL_NODE_GROUP, group("1Ki"));
        client.create(ResourceKinds.LOCAL_MODEL_CACHE, cache("kept", "gs://zoo/kept", "600"));
        try (KubernetesClient own = cluster.connect();
                KubernetesClient leases = cluster.connect();
                KubernetesClient agents = cluster.connect();
                Operator operator = new Operator(
                        new OperatorOptions(HOME, Set.of(), "models", 0, null, null), own, leases, lost::countDown)) {
            operator.start();
            until(
                    "the problem of the settings",
                    () -> status(ResourceKinds.LOCAL_MODEL_NODE_GROUP, "fast")
                            .path("message")
                            .asText()
                            .contains("nereid.image of the ConfigMap inferenceservice-config is empty"));
            client.create(
                    ResourceKinds.CONFIG_MAP,
                    tree(
                            "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'inferenceservice-config','namespace':'"
                                    + HOME + "'},'data':{'nereid':'{\\'image\\':\\'nereid:1\\'}'}}"));
            // The agents' DaemonSet with its volume, on the nodes of the group.
            until("the DaemonSet", () -> object(ClusterKinds.DAEMON_SET, HOME, "nereid-node-agent-fast") != null);
            until("the list of the node", () -> object(ResourceKinds.LOCAL_MODEL_NODE, null, "node-1") != null);
            until(
                    "one of two nodes",
                    () -> status(ResourceKinds.LOCAL_MODEL_CACHE, "kept")
                            .path("nodeStatus")
                            .equals(tree("{'node-1':'NodeDownloadPending'}")));
            assertThat(object(ResourceKinds.LOCAL_MODEL_NODE, null, "node-2")).isNull();
            until(
                    "the volume of the agents is bound",
                    () -> Objects.requireNonNull(
                                    object(ClusterKinds.PERSISTENT_VOLUME_CLAIM, HOME, "nereid-node-agent-fast"))
                            .path("status")
                            .path("phase")
                            .asText()
                            .equals("Bound"));
            try (NodeAgent agent = agent("node-1", volume, agents)) {
                assertThat(agent.healthPort()).isPositive();
                until(
                        "the download",
                        () -> status(ResourceKinds.LOCAL_MODEL_CACHE, "kept")
                                .path("nodeStatus")
                                .path("node-1")
                                .asText()
                                .equals("NodeDownloading"));
                client.create(ResourceKinds.INFERENCE_SERVICE, service("hit", "Standard", "gs://zoo/kept/sub"));
                client.create(ResourceKinds.INFERENCE_SERVICE, service("miss", "Standard", "gs://zoo/other"));
                until("the service without the cache", () -> isReady("miss"));
                until(
                        "the user",
                        () -> status(ResourceKinds.LOCAL_MODEL_CACHE, "kept")
                                .path("inferenceServices")
                                .equals(tree("{'all':[{'namespace':'default','name':'hit'}]}")
                                        .path("all")));
                assertThat(object(ClusterKinds.PERSISTENT_VOLUME_CLAIM, "default", "kept-fast"))
                        .as("pods wait for the download")
                        .isNull();
                assertThat(isReady("hit")).isFalse();

                OPEN.countDown();
                until("the service with the cache", () -> isReady("hit"));
                Path model = volume.resolve("models").resolve(CachedModels.folder("gs://zoo/kept"));
                assertThat(model.resolve("model.joblib")).hasSize(500);
                JsonNode pod = Objects.requireNonNull(object(ClusterKinds.DEPLOYMENT, "default", "hit-predictor"))
                        .at("/spec/template/spec");
                assertThat(pod.path("initContainers")).isEmpty();
                assertThat(pod.at("/volumes/0/persistentVolumeClaim/claimName").asText())
                        .isEqualTo("kept-fast");
                assertThat(pod.at("/containers/0/volumeMounts/0/subPath").asText())
                        .isEqualTo("models/" + CachedModels.folder("gs://zoo/kept") + "/sub");
                until(
                        "the copies",
                        () -> status(ResourceKinds.LOCAL_MODEL_CACHE, "kept")
                                .path("copies")
                                .equals(tree("{'total':1,'available':1}")));
                assertThat(status(ResourceKinds.LOCAL_MODEL_NODE_GROUP, "fast"))
                        .isEqualTo(tree("{'used':'600','available':'424'}"));

                // What is settled is not written again.
                long writes = writes(operator);
                LockSupport.parkNanos(Duration.ofSeconds(4).toNanos());
                assertThat(writes(operator)).isEqualTo(writes);

                // A model that does not fit, beside one that is used.
                STORE.put("gs://zoo/big", 500);
                client.create(ResourceKinds.LOCAL_MODEL_CACHE, cache("big", "gs://zoo/big", "500"));
                until(
                        "the refusal",
                        () -> status(ResourceKinds.LOCAL_MODEL_CACHE, "big")
                                .path("messages")
                                .path("fast")
                                .asText()
                                .contains("has 1024 bytes, of which other models have 600, and modelSize is 500"));

                // Without users the model that was used last stays; the other one is more recent: it takes its place.
                client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "hit", null);
                until(
                        "the last use",
                        () -> status(ResourceKinds.LOCAL_MODEL_CACHE, "kept").has("lastUsed"));
                client.create(ResourceKinds.INFERENCE_SERVICE, service("large", "Knative", "gs://zoo/big"));
                until(
                        "the other model",
                        () -> Files.exists(volume.resolve("models").resolve(CachedModels.folder("gs://zoo/big"))));
                assertThat(model).doesNotExist();
                until(
                        "the first one is refused",
                        () -> status(ResourceKinds.LOCAL_MODEL_CACHE, "kept")
                                .path("messages")
                                .has("fast"));
                until(
                        "the claim of the other namespace's service",
                        () -> object(ClusterKinds.PERSISTENT_VOLUME_CLAIM, "default", "big-fast") != null);

                // A deletion is not kept by KServe's finalizer, and removes everything.
                client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "large", null);
                client.delete(ResourceKinds.LOCAL_MODEL_CACHE, null, "big", null);
                client.delete(ResourceKinds.LOCAL_MODEL_CACHE, null, "kept", null);
                until(
                        "the caches are gone",
                        () -> client.list(ResourceKinds.LOCAL_MODEL_CACHE, null).isEmpty());
                until(
                        "the list is gone",
                        () -> client.list(ResourceKinds.LOCAL_MODEL_NODE, null).isEmpty());
                until(
                        "the files are gone",
                        () -> !Files.exists(volume.resolve("models").resolve(CachedModels.folder("gs://zoo/big"))));
                client.delete(ResourceKinds.LOCAL_MODEL_NODE_GROUP, null, "fast", null);
                until(
                        "the DaemonSet is gone",
                        () -> object(ClusterKinds.DAEMON_SET, HOME, "nereid-node-agent-fast") == null);
            }
            assertThat(lost.getCount()).isEqualTo(1);
        }
    }
}
