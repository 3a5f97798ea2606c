// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.RouteCodec;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.gateway.upstream.ProtocolTranscoder;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.kubernetes.revision.RevisionSettings;
import io.nereid.control.operator.access.AccessReviewOptions;
import io.nereid.control.operator.access.ProtectedServices;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient.UnaryCalls;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import io.nereid.transport.api.access.AccessPolicy;
import io.nereid.transport.proxy.PooledUpstreamClient;
import io.nereid.transport.server.Server;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/** A gateway with real sockets, which receives the objects of a cluster from the test. Confined to the test's thread. */
public final class GatewayFixture implements AutoCloseable {
    static final ObjectMapper JSON = new ObjectMapper();

    final PooledUpstreamClient upstream = new PooledUpstreamClient(PooledUpstreamClient.Options.DEFAULT);
    final Gateway gateway = new Gateway(
            upstream, new NoTranscoder(), Clock.system(), (namespace, revision) -> wake(namespace, revision));
    final ClusterRouting routing;
    final LoadSampler sampler;
    final HttpClient client = HttpClient.newHttpClient();
    private final Server server;
    final int port;
    /** The annotation of the routes that follow; empty for none. */
    String enableAuth = "";

    private final List<AutoCloseable> opened = new ArrayList<>();

    private volatile WakeListener wakes = (namespace, revision) -> {};

    public GatewayFixture() {
        this(new ProtectedServices(AccessReviewOptions.Mode.ANNOTATED), gateway -> AccessPolicy.OPEN);
    }

    /** @param access makes the access policy of the gateway */
    GatewayFixture(ProtectedServices services, Function<Gateway, AccessPolicy> access) {
        routing = new ClusterRouting(gateway, route -> List.of(), services, "");
        sampler = new LoadSampler(routing, Clock.system());
        server = new Server(
                ServerOptions.builder()
                        .listen("127.0.0.1", 0)
                        .virtualHosts(gateway)
                        .access(access.apply(gateway))
                        .build(),
                List.of());
        gateway.hostFactory(server);
        port = server.start().get(0).getPort();
    }

    private void wake(String namespace, String revision) {
        sampler.wake(namespace, revision);
        wakes.wake(namespace, revision);
    }

    /** Sets what is called for a request to a revision without pods. */
    public void onWake(WakeListener listener) {
        wakes = listener;
    }

    /** The port for requests. */
    public int port() {
        return port;
    }

    /** Leads a service to one revision. */
    public void serve(String service, String revision) {
        revision(
                Change.Kind.ADDED,
                revision,
                new RevisionSettings(service, 0, Duration.ofSeconds(60), 8080, 0, true, 0));
        String unused = route(Change.Kind.ADDED, service, to(revision, 100));
    }

    /** Takes an EndpointSlice as the API server would send it. */
    public void slice(ObjectNode slice) {
        routing.slice(Change.Kind.MODIFIED, slice);
    }

    /** Whether the gateway reports that it follows this text under this name. */
    public boolean follows(String namespace, String name, String text) {
        return routing.followed().contains(new FollowedRoute(namespace, name, FollowedRoute.digest(text)));
    }

    /** Starts to measure the load. */
    public void measure() {
        sampler.start();
    }

    /** The load of a revision in the last second. */
    public RevisionLoad load(String namespace, String revision) {
        return sampler.last().revisions().stream()
                .filter(one ->
                        one.namespace().equals(namespace) && one.revision().equals(revision))
                .findFirst()
                .orElse(new RevisionLoad(namespace, revision, 0, 0, 0, 0, 0));
    }

    /** All pods of these tests speak HTTP. */
    private static final class NoTranscoder implements ProtocolTranscoder {
        @Override
        public GrpcListener overRest(GrpcCall call, VirtualHost rest) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void overGrpc(HttpExchange exchange, UnaryCalls grpc) {
            throw new UnsupportedOperationException();
        }
    }

    /** A pod: answers every request with its name and the path that it saw; {@code /slow} when it is allowed to. */
    final class Pod implements AutoCloseable {
        final HttpServer http;
        final AtomicInteger requests = new AtomicInteger();
        final CountDownLatch slow = new CountDownLatch(1);
        private final ExecutorService threads = Threads.pool("pod", 8);

        Pod(String name) {
            try {
                http = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 16);
            } catch (IOException e) {
                throw new AssertionError(e);
            }
            http.setExecutor(threads);
            http.createContext("/", exchange -> {
                requests.incrementAndGet();
                String path = exchange.getRequestURI().toString();
                if (path.startsWith("/slow")) {
                    try {
                        slow.await();
                    } catch (InterruptedException e) {
                        throw new IOException(e);
                    }
                }
                byte[] bytes = (name + " " + path).getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(200, bytes.length);
                exchange.getResponseBody().write(bytes);
                exchange.close();
            });
            http.start();
            opened.add(this);
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

    private static ObjectNode object(String name) {
        ObjectNode object = JSON.createObjectNode();
        object.withObject("/metadata").put("namespace", "default").put("name", name);
        return object;
    }

    /** Adds, changes or deletes a route, and returns its text. */
    String route(Change.Kind change, String name, Target... targets) {
        Route route = new Route(
                "default",
                name,
                "InferenceService",
                List.of(
                        new IngressRule(name + ".default.example.com", "", null, null),
                        new IngressRule("", "/serving/default/" + name, null, null)),
                Map.of(Component.PREDICTOR, new Backend(List.of(targets), List.of(), null)),
                "");
        String text = RouteCodec.write(route);
        routeText(change, name, text);
        return text;
    }

    void routeText(Change.Kind change, String name, String text) {
        ObjectNode service = object(name);
        ObjectNode annotations = service.withObject("/metadata/annotations").put(GatewayObjects.ROUTE, text);
        if (!enableAuth.isEmpty()) {
            annotations.put(GatewayObjects.ENABLE_AUTH, enableAuth);
        }
        routing.route(change, service);
    }

    static Target to(String revision, int percent) {
        return new Target(revision, percent, null);
    }

    static RevisionSettings settings(int containerConcurrency) {
        return new RevisionSettings("iris", containerConcurrency, Duration.ofSeconds(60), 8080, 0, true, 211);
    }

    void revision(Change.Kind change, String name, RevisionSettings settings) {
        ObjectNode service = object(GatewayObjects.privateService(name));
        service.withObject("/metadata/labels").put(GatewayObjects.REVISION_LABEL, name);
        service.withObject("/metadata/annotations").put(GatewayObjects.REVISION, settings.toJson());
        routing.revision(change, service);
    }

    /** An EndpointSlice with one endpoint, whose pod listens at a port. */
    void endpoint(Change.Kind change, String revision, String slice, int podPort, boolean ready, boolean terminating) {
        ObjectNode object = object(slice);
        object.withObject("/metadata/labels")
                .put(GatewayObjects.REVISION_LABEL, revision)
                .put(GatewayObjects.SLICE_SERVICE, GatewayObjects.privateService(revision));
        object.put("addressType", "IPv4");
        object.putArray("ports").addObject().put("name", "http").put("port", podPort);
        ObjectNode endpoint = object.putArray("endpoints").addObject();
        endpoint.putArray("addresses").add("127.0.0.1");
        endpoint.withObject("/conditions")
                .put("ready", ready)
                .put("serving", ready || terminating)
                .put("terminating", terminating);
        routing.slice(change, object);
    }

    void endpoint(String revision, Pod pod) {
        endpoint(Change.Kind.ADDED, revision, revision + "-" + pod.port(), pod.port(), true, false);
    }

    // ---- requests ----

    CompletableFuture<HttpResponse<String>> post(String path) {
        return client.sendAsync(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .POST(HttpRequest.BodyPublishers.ofString("{}"))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    String answer(String path) {
        HttpResponse<String> response =
                post(path).orTimeout(60, TimeUnit.SECONDS).join();
        return response.statusCode() + " " + response.body();
    }

    /** Sends a request with a host, and returns the status line and the body. */
    String ask(String host, String path) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getOutputStream()
                    .write(("GET " + path + " HTTP/1.1\r\nhost: " + host + "\r\nconnection: close\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not within 60 s: " + what);
            }
            try {
                boolean unused = new CountDownLatch(1).await(10, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    @Override
    public void close() {
        server.close();
        sampler.close();
        gateway.close();
        upstream.close();
        opened.forEach(one -> {
            try {
                one.close();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }
}
