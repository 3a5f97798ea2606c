// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.pool.SharedForms;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.gateway.RevisionLoad;
import io.nereid.control.operator.revision.LoadSource;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The objects that the controller writes, and what it takes from the API server, of which the test plays the part. */
class PoolControllerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String POOL = "nereid-pool-kserve-nereid";
    private static final String SLICES = "/apis/discovery.k8s.io/v1/endpointslices";

    private final ExecutorService threads = Threads.pool("api-server", 8);
    private final Map<String, ObjectNode> stored = new ConcurrentHashMap<>();
    private final Set<String> keys = ConcurrentHashMap.newKeySet();
    private final Set<String> models = ConcurrentHashMap.newKeySet();
    private HttpServer api;
    private HttpServer pod;
    private KubernetesClient client;
    private PoolController controller;
    private volatile @Nullable OutputStream watch;

    private static final class NoLoad implements LoadSource {
        @Override
        public void start(Duration limit, WakeListener listener) {}

        @Override
        public boolean isComplete() {
            return true;
        }

        @Override
        public boolean isServing() {
            return true;
        }

        @Override
        public void onServing(Runnable listener) {}

        @Override
        public RevisionLoad load(String namespace, String revision) {
            return new RevisionLoad(namespace, revision, 0, 0, 0, 0, 0);
        }

        @Override
        public boolean awaitRoute(String namespace, String name, String text, Duration limit) {
            return true;
        }

        @Override
        public void close() {}
    }

    @BeforeEach
    void start() throws IOException {
        api = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 16);
        api.setExecutor(threads);
        api.createContext("/", this::api);
        api.start();
        pod = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 16);
        pod.setExecutor(threads);
        pod.createContext("/v2/repository/", this::pod);
        pod.start();
        Config config = new ConfigBuilder(Config.empty())
                .withMasterUrl("http://localhost:" + api.getAddress().getPort())
                .withRequestRetryBackoffLimit(0)
                .build();
        client = new KubernetesClientBuilder().withConfig(config).build();
        controller = new PoolController(new ClusterClient(client), Set.of(), "nereid", new NoLoad(), Clock.system());
    }

    @AfterEach
    void stop() {
        controller.close();
        client.close();
        api.stop(0);
        pod.stop(0);
        threads.shutdownNow();
    }

    private void api(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        String query = String.valueOf(exchange.getRequestURI().getQuery());
        byte[] body = exchange.getRequestBody().readAllBytes();
        if (query.contains("watch=true")) {
            exchange.sendResponseHeaders(200, 0);
            watch = exchange.getResponseBody();
            return;
        }
        switch (exchange.getRequestMethod()) {
            case "GET" -> {
                ObjectNode found = stored.get(path);
                if (path.equals(SLICES)) {
                    assertThat(query).contains(PoolObjects.OF_POOL);
                    answer(exchange, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
                } else if (found == null) {
                    answer(exchange, 404, "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}");
                } else {
                    answer(exchange, 200, found.toString());
                }
            }
            case "DELETE" -> {
                stored.remove(path);
                answer(exchange, 200, "{}");
            }
            default -> {
                ObjectNode object = (ObjectNode) JSON.readTree(body);
                String name = object.path("metadata").path("name").asText();
                stored.put(exchange.getRequestMethod().equals("POST") ? path + "/" + name : path, object);
                answer(exchange, 200, object.toString());
            }
        }
    }

    private void pod(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        keys.add(String.valueOf(exchange.getRequestHeaders().getFirst("x-api-key")));
        if (path.endsWith("/load")) {
            models.add(path.split("/")[4] + " "
                    + JSON.readTree(body).at("/parameters/storage_uri").asText());
        }
        answer(exchange, 200, path.endsWith("/index") ? "[]" : "{}");
    }

    private static void answer(HttpExchange exchange, int code, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("content-type", "application/json");
        exchange.sendResponseHeaders(code, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    private static void until(String what, BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            boolean unused = new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS);
        }
    }

    private static Workload workload(String uri) {
        ObjectNode spec = JsonNodeFactory.instance.objectNode();
        spec.putArray("containers").addObject().put("name", "kserve-container").put("image", "nereid:1");
        return new Workload(
                "default",
                "iris",
                Workload.Component.PREDICTOR,
                "iris-predictor-00001",
                "iris",
                new Workload.Pod(spec, 8080, 8081),
                new Workload.Scaling(0, 0, "concurrency", null, "none", Map.of()),
                0,
                Duration.ofMinutes(5),
                null,
                null,
                Map.of("nereid.io/pool", POOL),
                Map.of(
                        "nereid.io/placement-storage-uri", uri,
                        "nereid.io/placement-memory", "1048576",
                        "nereid.io/pool-min-pods", "2",
                        "nereid.io/pool-max-pods", "3"));
    }

    private void sent(String type, String pods) throws IOException {
        OutputStream to = watch;
        assertThat(to).isNotNull();
        to.write(("{\"type\":\"" + type + "\",\"object\":{\"metadata\":{\"namespace\":\"default\",\"name\":\"" + POOL
                        + "-x\",\"uid\":\"u\",\"resourceVersion\":\"" + (stored.size() + 10 + type.length())
                        + "\",\"labels\":{\"" + PoolObjects.OF_POOL + "\":\"" + POOL
                        + "\"}},\"addressType\":\"IPv4\",\"ports\":[{\"name\":\"http\",\"port\":"
                        + pod.getAddress().getPort() + "}],\"endpoints\":[" + pods + "]}}\n")
                .getBytes(StandardCharsets.UTF_8));
        to.flush();
    }

    @Test
    void trainedModelsOfAServiceAreModelsOfThePoolUnderTheirOwnNames() throws Exception {
        Owner owner = new Owner("serving.kserve.io/v1beta1", "InferenceService", "iris", "default", "u-1");
        Owner rose = new Owner("serving.kserve.io/v1alpha1", "TrainedModel", "rose", "default", "u-2");
        Set<String> changed = ConcurrentHashMap.newKeySet();
        controller.onModelChange((namespace, service) -> changed.add(namespace + "/" + service));
        controller.start(Duration.ofSeconds(60));
        until("the slices are watched", () -> watch != null);
        Workload parent = workload("");
        controller.configure(owner, List.of(parent), "");
        assertThat(controller.parent("default", "iris")).isEqualTo(parent);
        assertThat(controller.state("default", "iris").phase()).isEqualTo(Phase.PENDING);
        SharedModel shared = Objects.requireNonNull(SharedForms.model(parent));
        controller.configureModel(rose, "iris", shared.with("gs://models/rose", 1 << 20), false);
        until(
                "the pool has a Deployment",
                () -> stored.containsKey("/apis/apps/v1/namespaces/default/deployments/" + POOL));
        sent(
                "ADDED",
                "{\"addresses\":[\"127.0.0.1\"],\"conditions\":{\"ready\":true},\"targetRef\":{\"name\":\"pod-1\","
                        + "\"uid\":\"uid-1\"}}");
        until("the service is ready", () -> controller.state("default", "iris").phase() == Phase.READY);
        until(
                "the model is ready",
                () -> controller.modelState("default", "rose").phase() == Phase.READY);
        assertThat(models).containsExactly("rose gs://models/rose");
        assertThat(changed).containsExactly("default/iris");
        String slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/"
                + PoolObjects.sliceName(PoolObjects.modelRevision("rose"));
        until("the gateways have the slice", () -> stored.containsKey(slice));
        assertThat(stored.get(slice).at("/metadata/ownerReferences/0/kind").asText())
                .isEqualTo("TrainedModel");
        assertThat(stored.get(slice)
                        .at("/metadata/labels/serving.kserve.io~1inferenceservice")
                        .asText())
                .isEqualTo("iris");

        // A service of that name has to wait until the TrainedModel has gone.
        Owner service = new Owner("serving.kserve.io/v1beta1", "InferenceService", "rose", "default", "u-3");
        controller.configure(service, List.of(workload("gs://models/other")), "");
        until("the name is taken", () -> controller.state("default", "rose").phase() == Phase.FAILED);
        assertThat(Objects.requireNonNull(controller.state("default", "rose").failure())
                        .message())
                .contains("has a model 'rose' already, of the TrainedModel of this name");
        assertThat(controller.modelState("default", "rose").phase()).isEqualTo(Phase.READY);
        controller.forgetModel("default", "rose");
        until("its turn has come", () -> controller.state("default", "rose").phase() == Phase.READY);
        assertThat(models).contains("rose gs://models/other");

        controller.forget("default", "rose");
        controller.forget("default", "iris");
        until("the pool is gone", () -> !stored.containsKey("/apis/apps/v1/namespaces/default/deployments/" + POOL));
    }

    @Test
    void aPoolIsMadeServesAModelAndGoesWithItsLastService() throws Exception {
        Owner owner = new Owner("serving.kserve.io/v1beta1", "InferenceService", "iris", "default", "u-1");
        controller.start(Duration.ofSeconds(60));
        until("the slices are watched", () -> watch != null);
        controller.configure(owner, List.of(workload("gs://models/iris")), "");
        String deployment = "/apis/apps/v1/namespaces/default/deployments/" + POOL;
        until("the pool has a Deployment", () -> stored.containsKey(deployment));
        ObjectNode made = stored.get(deployment);
        assertThat(made.at("/spec/replicas").asInt()).isEqualTo(2);
        assertThat(made.at("/spec/template/metadata/labels/nereid.io~1pool-of").asText())
                .isEqualTo(POOL);
        assertThat(stored.get("/api/v1/namespaces/default/services/" + POOL)
                        .at("/spec/clusterIP")
                        .asText())
                .isEqualTo("None");
        assertThat(controller.state("default", "iris").phase()).isEqualTo(Phase.PENDING);

        sent(
                "ADDED",
                "{\"addresses\":[\"127.0.0.1\"],\"conditions\":{\"ready\":true},\"targetRef\":{\"name\":\"pod-1\","
                        + "\"uid\":\"uid-1\"}}");
        until("the model is loaded", () -> models.contains("iris gs://models/iris"));
        String slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/"
                + PoolObjects.sliceName("iris-predictor-00001");
        until("the gateways have the slice", () -> stored.containsKey(slice));
        JsonNode table = stored.get(slice);
        assertThat(table.at("/endpoints/0/addresses/0").asText()).isEqualTo("127.0.0.1");
        assertThat(table.at("/metadata/labels/kubernetes.io~1service-name").asText())
                .isEqualTo("iris-predictor-00001-private");
        assertThat(table.at("/metadata/ownerReferences/0/name").asText()).isEqualTo("iris");
        until("the service is ready", () -> controller.state("default", "iris").phase() == Phase.READY);

        // The pods know a digest of the key alone.
        String rules =
                stored.get("/api/v1/namespaces/default/configmaps/" + POOL).toString();
        String secret =
                stored.get("/api/v1/namespaces/nereid/secrets/nereid-pools").toString();
        assertThat(keys).singleElement().satisfies(key -> {
            assertThat(key).startsWith("nrd_");
            assertThat(rules).doesNotContain(key.substring(20)).contains("sha256", key.substring(4, 16));
            assertThat(secret).doesNotContain(key.substring(20));
        });

        controller.configure(owner, List.of(), "");
        until("the table is empty", () -> stored.get(slice).path("endpoints").isEmpty());
        until("the pool is gone", () -> !stored.containsKey(deployment));
    }
}
