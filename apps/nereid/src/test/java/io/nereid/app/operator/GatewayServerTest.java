// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpServer;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.Main;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.RouteCodec;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.kubernetes.revision.RevisionSettings;
import io.nereid.control.operator.access.AccessReviewOptions;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.gateway.GatewayOptions;
import io.nereid.control.operator.gateway.GatewayStatistics;
import io.nereid.tensor.MemoryRegion;
import io.nereid.testing.kubernetes.TestCluster;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.server.Server;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The gateway with a real API server. The test writes the Services that the operator writes, and EndpointSlices with an
 * address of this machine, at which servers of the test answer as pods.
 */
@SuppressWarnings("NullAway.Init") // set before the tests
class GatewayServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String NAMESPACE = "default";

    @TempDir
    static Path directory;

    private static TestCluster cluster;
    private static ClusterClient objects;
    private static KubernetesClient client;
    private static GatewayServer gateway;
    private static int port;
    private static String address;
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final List<AutoCloseable> OPENED = new ArrayList<>();

    @BeforeAll
    static void start() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        // The API server refuses loopback addresses in EndpointSlices.
        Optional<String> found = NetworkInterface.networkInterfaces()
                .flatMap(NetworkInterface::inetAddresses)
                .filter(one -> one instanceof Inet4Address && !one.isLoopbackAddress() && !one.isLinkLocalAddress())
                .map(InetAddress::getHostAddress)
                .findFirst();
        assumeTrue(found.isPresent(), "this machine has no IPv4 address but loopback ones");
        address = found.get();
        cluster = TestCluster.start(directory.resolve("cluster"));
        objects = new ClusterClient(cluster.client());
        client = cluster.connect();
        gateway = gateway(AccessOptions.none(Clock.system()));
        port = gateway.start();
    }

    private static GatewayServer gateway(AccessOptions access) {
        return new GatewayServer(
                new GatewayOptions(NAMESPACE, Set.of(), 0, 0),
                ServerOptions.builder().listen("127.0.0.1", 0),
                client,
                client,
                new AccessReviewOptions(AccessReviewOptions.Mode.ANNOTATED, List.of(), Duration.ofSeconds(30)),
                new AccessControl(access));
    }

    @AfterAll
    static void stop() throws Exception {
        if (gateway != null) {
            gateway.close();
        }
        for (AutoCloseable one : OPENED) {
            one.close();
        }
        if (client != null) {
            client.close();
        }
        if (cluster != null) {
            cluster.close();
        }
    }

    /** A pod: answers with its name and the path; {@code /slow} waits until it may. */
    private static final class Pod implements AutoCloseable {
        final HttpServer http;
        final AtomicInteger requests = new AtomicInteger();
        final CountDownLatch slow = new CountDownLatch(1);
        private final ExecutorService threads = Threads.pool("pod", 8);

        Pod(String name) throws IOException {
            http = HttpServer.create(new InetSocketAddress(address, 0), 16);
            http.setExecutor(threads);
            http.createContext("/", exchange -> {
                requests.incrementAndGet();
                String path = exchange.getRequestURI().toString();
                String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                if (path.endsWith("/slow")) {
                    try {
                        slow.await();
                    } catch (InterruptedException e) {
                        throw new IOException(e);
                    }
                }
                String text = path.contains("/v2/")
                        ? "{\"by\":\"" + name + "\",\"in\":" + (body.isEmpty() ? "null" : body) + "}"
                        : name + " " + path;
                byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
                exchange.getResponseHeaders().set("Content-Type", "application/json");
                exchange.sendResponseHeaders(200, bytes.length);
                exchange.getResponseBody().write(bytes);
                exchange.close();
            });
            http.start();
            OPENED.add(this);
        }

        int port() {
            return http.getAddress().getPort();
        }

        @Override
        public void close() {
            http.stop(0);
            threads.shutdownNow();
        }
    }

    // ---- objects ----

    private static ObjectNode service(String name) {
        ObjectNode service = JSON.createObjectNode().put("apiVersion", "v1").put("kind", "Service");
        service.withObject("/metadata").put("namespace", NAMESPACE).put("name", name);
        return service;
    }

    private static void route(Route route) {
        ObjectNode service = service(route.name());
        service.withObject("/metadata/labels").put(GatewayObjects.ROUTE, "true");
        service.withObject("/metadata/annotations").put(GatewayObjects.ROUTE, RouteCodec.write(route));
        service.withObject("/spec").put("type", "ExternalName").put("externalName", "gateway.nereid.svc.cluster.local");
        ObjectNode unused = objects.apply(ClusterKinds.SERVICE, service);
    }

    private static void route(String name, Target... targets) {
        route(new Route(
                NAMESPACE,
                name,
                "InferenceService",
                List.of(new IngressRule("", "/serving/default/" + name, null, null)),
                Map.of(Component.PREDICTOR, new Backend(List.of(targets), List.of(), null)),
                ""));
    }

    private static Target to(String revision, int percent) {
        return new Target(revision, percent, null);
    }

    private static void revision(String name, int httpPort, int grpcPort) {
        ObjectNode service = service(GatewayObjects.privateService(name));
        service.withObject("/metadata/labels").put(GatewayObjects.REVISION_LABEL, name);
        service.withObject("/metadata/annotations")
                .put(
                        GatewayObjects.REVISION,
                        new RevisionSettings("iris", 0, Duration.ofSeconds(120), httpPort, grpcPort, true, 211)
                                .toJson());
        ObjectNode spec = service.withObject("/spec");
        spec.put("clusterIP", "None");
        spec.putArray("ports").addObject().put("name", "port").put("port", 80);
        ObjectNode unused = objects.apply(ClusterKinds.SERVICE, service);
    }

    private static ObjectNode slice(String revision, int podPort, boolean ready, boolean terminating) {
        ObjectNode slice =
                JSON.createObjectNode().put("apiVersion", "discovery.k8s.io/v1").put("kind", "EndpointSlice");
        slice.withObject("/metadata")
                .put("namespace", NAMESPACE)
                .put("name", revision + "-" + podPort)
                .withObject("/labels")
                .put(GatewayObjects.REVISION_LABEL, revision)
                .put(GatewayObjects.SLICE_SERVICE, GatewayObjects.privateService(revision))
                .put("endpointslice.kubernetes.io/managed-by", "test");
        slice.put("addressType", "IPv4");
        slice.putArray("ports").addObject().put("name", "http").put("port", podPort);
        ObjectNode endpoint = slice.putArray("endpoints").addObject();
        endpoint.putArray("addresses").add(address);
        endpoint.withObject("/conditions")
                .put("ready", ready)
                .put("serving", ready || terminating)
                .put("terminating", terminating);
        return slice;
    }

    private static void endpoint(String revision, int podPort, boolean ready, boolean terminating) {
        ObjectNode unused = objects.apply(ClusterKinds.ENDPOINT_SLICE, slice(revision, podPort, ready, terminating));
    }

    // ---- requests ----

    private static CompletableFuture<HttpResponse<String>> post(int to, String path, String... headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + to + path))
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString("{\"x\":1}"));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HTTP.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private static String answer(String path) {
        HttpResponse<String> response =
                post(port, path).orTimeout(60, TimeUnit.SECONDS).join();
        return response.statusCode() + " " + response.body();
    }

    private static int probe(GatewayServer of) {
        try {
            return HTTP.send(
                            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + of.healthPort() + "/readyz"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .statusCode();
        } catch (IOException e) {
            return 0;
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + 90_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not within 90 s: " + what);
            }
            try {
                boolean unused = new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    // ---- tests ----

    @Test
    void aRevisionIsWokenFromZeroSplitsItsTrafficAndDrains() throws Exception {
        List<String> woken = new CopyOnWriteArrayList<>();
        try (GatewayStatistics statistics =
                new GatewayStatistics(Clock.system(), (namespace, revision) -> woken.add(revision))) {
            statistics.gateways(Set.of(new GatewayStatistics.Address("127.0.0.1", gateway.statisticsPort())));
            until("the gateway is heard", statistics::isComplete);
            revision("iris-1", 8080, 0);
            route("iris", to("iris-1", 100));
            until(
                    "the route is known",
                    () -> !post(port, "/serving/default/iris/v1")
                            .completeOnTimeout(null, 1, TimeUnit.SECONDS)
                            .thenApply(r -> r != null && r.statusCode() == 404)
                            .join());
            CompletableFuture<HttpResponse<String>> held = post(port, "/serving/default/iris/v2/models/iris/infer");
            until("the autoscaler is notified", () -> woken.contains("iris-1"));
            Pod old = new Pod("old");
            endpoint("iris-1", old.port(), true, false);
            assertThat(held.get(60, TimeUnit.SECONDS).body()).isEqualTo("{\"by\":\"old\",\"in\":{\"x\":1}}");

            Pod canary = new Pod("canary");
            endpoint("iris-2", canary.port(), true, false);
            revision("iris-2", 8080, 0);
            route("iris", to("iris-1", 80), to("iris-2", 20));
            until("the canary gets traffic", () -> {
                String unused = answer("/serving/default/iris/v1");
                return canary.requests.get() > 0;
            });
            int before = canary.requests.get();
            for (int i = 0; i < 500; i++) {
                assertThat(answer("/serving/default/iris/v1")).startsWith("200");
            }
            assertThat(canary.requests.get() - before).isBetween(45, 155);

            route("iris", to("iris-1", 100));
            until("the canary gets nothing", () -> {
                int seen = canary.requests.get();
                for (int i = 0; i < 40; i++) {
                    String unused = answer("/serving/default/iris/v1");
                }
                return canary.requests.get() == seen;
            });
            int had = old.requests.get();
            CompletableFuture<HttpResponse<String>> slow = post(port, "/serving/default/iris/slow");
            until("the pod has it", () -> old.requests.get() == had + 1);
            Pod next = new Pod("next");
            endpoint("iris-1", next.port(), true, false);
            endpoint("iris-1", old.port(), false, true);
            until(
                    "the new pod is used",
                    () -> answer("/serving/default/iris/v1").equals("200 next /v1"));
            until("only the new pod is used", () -> {
                int seen = old.requests.get();
                for (int i = 0; i < 20; i++) {
                    String unused = answer("/serving/default/iris/v1");
                }
                return old.requests.get() == seen;
            });
            assertThat(slow).isNotDone();
            old.slow.countDown();
            assertThat(slow.get(60, TimeUnit.SECONDS).body()).isEqualTo("old /slow");
        }
    }

    @Test
    void aGraphRunsItsStepsAtTheServicesThatItNames() throws Exception {
        Pod first = new Pod("first");
        Pod second = new Pod("second");
        for (var step : Map.of("step-a", first, "step-b", second).entrySet()) {
            endpoint(step.getKey() + "-1", step.getValue().port(), true, false);
            revision(step.getKey() + "-1", 8080, 0);
            route(step.getKey(), to(step.getKey() + "-1", 100));
        }
        // The last step is served elsewhere, so that it is called at its URL.
        Pod elsewhere = new Pod("elsewhere");
        String graph = """
                {"nodes": {"root": {"routerType": "Sequence", "steps": [
                  {"serviceName": "step-a", "serviceUrl": "http://step-a.example.com/v2/models/a/infer"},
                  {"serviceName": "step-b", "serviceUrl": "http://step-b.example.com/v2/models/b/infer",
                   "data": "$response"},
                  {"serviceName": "plain", "serviceUrl": "http://POD/v2/models/c/infer", "data": "$response"}]}}}
                """.replace("POD", address + ":" + elsewhere.port());
        route(new Route(
                NAMESPACE,
                "flow",
                "InferenceGraph",
                List.of(new IngressRule("", "/serving/default/flow", null, null)),
                Map.of(),
                graph));
        String expected =
                "200 {\"by\":\"elsewhere\",\"in\":{\"by\":\"second\",\"in\":{\"by\":\"first\",\"in\":{\"x\":1}}}}";
        until("the graph runs", () -> answer("/serving/default/flow").equals(expected));
    }

    /** Answers calls of the method with the bytes of the message, as a pod that speaks gRPC only. */
    private static final class EchoCodec implements ProtocolCodec {
        @Override
        public String name() {
            return "echo";
        }

        @Override
        public List<HttpRoute> httpRoutes() {
            return List.of(HttpRoute.get(
                    "/ready", io.nereid.base.access.Operation.HEALTH, x -> x.reply(HttpReply.json(200, "{}"))));
        }

        @Override
        public List<GrpcMethod> grpcMethods() {
            return List.of(new GrpcMethod(
                    "/test.Echo/Say",
                    GrpcMethod.Kind.UNARY,
                    io.nereid.base.access.Operation.INFERENCE,
                    call -> new GrpcMethod.GrpcListener() {
                        @Override
                        public void onMessage(MemoryRegion message) {
                            byte[] bytes = new byte[message.size()];
                            message.getBytes(0, bytes, 0, bytes.length);
                            call.send(new ResponseBody(bytes, bytes.length));
                        }

                        @Override
                        public void onHalfClose() {
                            call.close(io.nereid.base.ErrorCode.OK, "");
                        }

                        @Override
                        public void onCancel() {
                            // Nothing to release.
                        }
                    }));
        }
    }

    @Test
    void grpcCallsReachThePods() throws Exception {
        Server pod = new Server(ServerOptions.builder().listen(address, 0).build(), List.of(new EchoCodec()));
        int podPort = pod.start().get(0).getPort();
        OPENED.add(pod);
        ObjectNode slice = slice("calls-1", podPort, true, false);
        slice.putArray("ports").addObject().put("name", "grpc").put("port", podPort);
        ObjectNode unused = objects.apply(ClusterKinds.ENDPOINT_SLICE, slice);
        revision("calls-1", 0, 9000);
        route(new Route(
                NAMESPACE,
                "calls",
                "InferenceService",
                List.of(new IngressRule("localhost", "", null, null)),
                Map.of(Component.PREDICTOR, new Backend(List.of(to("calls-1", 100)), List.of(), null)),
                ""));
        try (GrpcEcho calls = new GrpcEcho(port)) {
            until("the call is answered", () -> "hello".equals(calls.say("hello")));
        }
    }

    @Test
    void whileTheApiServerIsAwayRequestsAreServedAndAfterwardsChangesAreFollowed() throws Exception {
        Pod pod = new Pod("steady");
        endpoint("steady-1", pod.port(), true, false);
        revision("steady-1", 8080, 0);
        route("steady", to("steady-1", 100));
        until("it is served", () -> answer("/serving/default/steady/v1").equals("200 steady /v1"));
        CompletableFuture<Void> restart = CompletableFuture.runAsync(
                () -> {
                    try {
                        cluster.restartApiServer();
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                },
                task -> new Thread(task).start());
        int served = 0;
        while (!restart.isDone()) {
            assertThat(answer("/serving/default/steady/v1")).isEqualTo("200 steady /v1");
            assertThat(probe(gateway)).isEqualTo(200);
            served++;
        }
        restart.join();
        assertThat(served).isPositive();
        Pod other = new Pod("other");
        endpoint("steady-1", other.port(), true, false);
        until("the new pod is used", () -> {
            assertThat(answer("/serving/default/steady/v1")).startsWith("200");
            return other.requests.get() > 0;
        });
    }

    @Test
    void aGatewayThatEndsIsNotReadyAtOnceAndLosesNoRequest() throws Exception {
        Pod pod = new Pod("last");
        endpoint("last-1", pod.port(), true, false);
        revision("last-1", 8080, 0);
        route("last", to("last-1", 100));
        GatewayServer ending = gateway(AccessOptions.none(Clock.system()));
        assertThat(probe(ending)).isEqualTo(503);
        int at = ending.start();
        assertThat(probe(ending)).isEqualTo(200);
        // What existed before it started is served from its first request on.
        assertThat(post(at, "/serving/default/last/v1")
                        .get(60, TimeUnit.SECONDS)
                        .body())
                .isEqualTo("last /v1");
        CompletableFuture<HttpResponse<String>> slow = post(at, "/serving/default/last/slow");
        until("the pod has it", () -> pod.requests.get() == 2);
        CompletableFuture<Boolean> stopped = CompletableFuture.supplyAsync(
                () -> ending.stop(Duration.ofSeconds(2), Duration.ofSeconds(60)), task -> new Thread(task).start());
        until("it is not ready", () -> probe(ending) == 503);
        assertThat(post(at, "/serving/default/last/v1")
                        .get(60, TimeUnit.SECONDS)
                        .statusCode())
                .isEqualTo(200);
        until("it takes no connections any more", () -> {
            try (java.net.Socket unused = new java.net.Socket("127.0.0.1", at)) {
                return false;
            } catch (IOException e) {
                return true;
            }
        });
        assertThat(stopped).isNotDone();
        pod.slow.countDown();
        assertThat(slow.get(60, TimeUnit.SECONDS).body()).isEqualTo("last /slow");
        assertThat(stopped.get(60, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void theAccessPolicyAppliesToTheServicesAsToTheModelsOfAServer() throws Exception {
        Pod pod = new Pod("guarded");
        endpoint("guarded-1", pod.port(), true, false);
        revision("guarded-1", 8080, 0);
        route("guarded", to("guarded-1", 100));
        Path keys = directory.resolve("keys.json");
        StringWriter out = new StringWriter();
        int exit = Main.commandLine()
                .setOut(new PrintWriter(out))
                .execute("keys", "create", "caller", "-f", keys.toString());
        assertThat(exit).isEqualTo(0);
        String key = out.toString().strip();
        GatewayServer guarded = gateway(
                new AccessOptions(keys, null, false, Set.of(), List.of(), List.of(), null, null, Clock.system()));
        int at = guarded.start();
        try {
            assertThat(post(at, "/serving/default/guarded/v1/models/m:predict", "authorization", "Bearer " + key)
                            .get(60, TimeUnit.SECONDS)
                            .statusCode())
                    .isEqualTo(200);
            assertThat(post(at, "/serving/default/guarded/v1/models/m:predict", "authorization", "Bearer other")
                            .get(60, TimeUnit.SECONDS)
                            .statusCode())
                    .isEqualTo(401);
            assertThat(pod.requests.get()).isEqualTo(1);
        } finally {
            guarded.close();
        }
    }

    @Test
    void protectedServicesTakeTokensOfTheClusterOverGrpcAndHttp() throws Exception {
        Server pod = new Server(ServerOptions.builder().listen(address, 0).build(), List.of(new EchoCodec()));
        int podPort = pod.start().get(0).getPort();
        OPENED.add(pod);
        ObjectNode slice = slice("closed-1", podPort, true, false);
        slice.putArray("ports").addObject().put("name", "grpc").put("port", podPort);
        ObjectNode unused = objects.apply(ClusterKinds.ENDPOINT_SLICE, slice);
        revision("closed-1", 0, 9000);
        ObjectNode service = service("closed");
        service.withObject("/metadata/labels").put(GatewayObjects.ROUTE, "true");
        service.withObject("/metadata/annotations")
                .put(GatewayObjects.ENABLE_AUTH, "true")
                .put(
                        GatewayObjects.ROUTE,
                        RouteCodec.write(new Route(
                                NAMESPACE,
                                "closed",
                                "InferenceService",
                                List.of(new IngressRule("127.0.0.1", "", null, null)),
                                Map.of(Component.PREDICTOR, new Backend(List.of(to("closed-1", 100)), List.of(), null)),
                                "")));
        service.withObject("/spec").put("type", "ExternalName").put("externalName", "gateway.nereid.svc.cluster.local");
        ObjectNode unusedToo = objects.apply(ClusterKinds.SERVICE, service);
        String role =
                "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{\"name\":\"caller\","
                        + "\"namespace\":\"default\"},\"rules\":[{\"apiGroups\":[\"serving.kserve.io\"],\"resources\":"
                        + "[\"inferenceservices\"],\"resourceNames\":[\"closed\"],\"verbs\":[\"get\"]}]}";
        Path file = directory.resolve("role.json");
        Files.writeString(file, role);
        cluster.kubectl("create", "-f", file.toString());
        for (String account : List.of("caller", "stranger")) {
            cluster.kubectl("create", "serviceaccount", account);
        }
        cluster.kubectl("create", "rolebinding", "caller", "--role=caller", "--serviceaccount=default:caller");
        String caller = cluster.kubectl("create", "token", "caller").strip();
        String stranger = cluster.kubectl("create", "token", "stranger").strip();
        Path audit = directory.resolve("audit.log");
        GatewayServer reviewing = gateway(
                new AccessOptions(null, null, false, Set.of(), List.of(), List.of(), null, audit, Clock.system()));
        int at = reviewing.start();
        try (GrpcEcho calls = new GrpcEcho("127.0.0.1", at)) {
            assertThat(calls.say("hello", caller)).isEqualTo("hello");
            assertThat(calls.say("again", caller)).isEqualTo("again");
            assertThat(calls.say("hello", stranger)).isEqualTo("PERMISSION_DENIED");
            assertThat(calls.say("hello", stranger)).isEqualTo("PERMISSION_DENIED");
            assertThat(calls.say("hello", null)).isEqualTo("UNAUTHENTICATED");
            HttpResponse<String> denied =
                    post(at, "/anything", "authorization", "Bearer " + stranger).get(60, TimeUnit.SECONDS);
            assertThat(denied.statusCode()).as(denied.body()).isEqualTo(403);
            until("the audit log names the account", () -> {
                try {
                    return Files.exists(audit)
                            && Files.readString(audit).contains("system:serviceaccount:default:stranger");
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
            assertThat(Files.readString(audit)).doesNotContain(stranger);
        } finally {
            reviewing.close();
            // Its host is that of all other tests.
            client.services().inNamespace(NAMESPACE).withName("closed").delete();
            until("the route is gone", () -> answer("/anything").startsWith("404"));
        }
    }
}
