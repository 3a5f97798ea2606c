// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.operator.gateway.GatewayFixture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * A pool behind a real gateway: requests over sockets for more models than the pods have memory for, while pods come and
 * go. A pod answers 404 for a model that it does not have, so that a request which is sent to a wrong pod counts as lost.
 */
class PoolServingTest {
    private static final int MODELS = 24;
    private static final long MIB = 1L << 20;
    private static final String KEY = "the key";

    private final GatewayFixture gateway = new GatewayFixture();
    private final ScheduledThreadPoolExecutor owner = Threads.timer("pool");
    private final HttpPoolServers servers = new HttpPoolServers(pod -> KEY);
    private final List<PodServer> running = new ArrayList<>();
    private final Map<String, PoolPod> pods = new ConcurrentHashMap<>();
    private final AtomicInteger loads = new AtomicInteger();
    private final AtomicInteger unloads = new AtomicInteger();

    private final PoolTables tables = (service, holders, followed) -> {
        String revision = service.revisions.iterator().next();
        gateway.slice(PoolObjects.slice(service.owner, service.service, revision, "pool", holders));
        assertThat(gateway.follows(
                        "default",
                        GatewayObjects.SLICE_PREFIX + PoolObjects.sliceName(revision),
                        PoolObjects.table(holders)))
                .isTrue();
        CompletableFuture<Void> done = new CompletableFuture<>();
        Object unused = owner.schedule(() -> done.complete(null), followed ? 500 : 0, TimeUnit.MILLISECONDS);
        return done;
    };

    private final ModelPool pool = new ModelPool(
            "default/pool", new PoolSize(8 * 16 * MIB, 2, 1, 4), servers, tables, owner, Clock.system(), service -> {});

    /** A pod with the repository API and models that answer with the pod's name. */
    private final class PodServer {
        final HttpServer http;
        final ExecutorService threads = Threads.pool("pod", 16);
        final Set<String> models = ConcurrentHashMap.newKeySet();
        final Holder holder;

        PodServer(String name) throws IOException {
            http = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 64);
            http.setExecutor(threads);
            http.createContext("/", this::answer);
            http.start();
            holder = new Holder(
                    name, name + "-uid", "127.0.0.1", http.getAddress().getPort(), 0, "");
            running.add(this);
        }

        private void answer(HttpExchange exchange) throws IOException {
            String path = exchange.getRequestURI().getPath();
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            int status = 200;
            String text = "{}";
            if (path.startsWith("/v2/repository")) {
                String[] parts = path.split("/");
                if (!KEY.equals(exchange.getRequestHeaders().getFirst("x-api-key"))) {
                    status = 401;
                } else if (path.endsWith("/index")) {
                    text = "[]";
                } else if (path.endsWith("/load")) {
                    assertThat(body).contains("storage_uri").contains("gs://models/");
                    loads.incrementAndGet();
                    models.add(parts[4]);
                } else {
                    unloads.incrementAndGet();
                    models.remove(parts[4]);
                }
            } else {
                status = models.contains(path.split("/")[3]) ? 200 : 404;
                text = holder.name();
            }
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        }

        void stop() {
            http.stop(0);
            threads.shutdownNow();
        }
    }

    @AfterEach
    void stop() {
        owner.shutdownNow();
        gateway.close();
        servers.close();
        running.forEach(PodServer::stop);
    }

    private void tell() {
        List<PoolPod> all = List.copyOf(pods.values());
        owner.execute(() -> pool.pods(all));
    }

    private PodServer join(String name) throws IOException {
        PodServer pod = new PodServer(name);
        pods.put(name, new PoolPod(pod.holder, true, false, true));
        tell();
        return pod;
    }

    private static void until(String what, BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            boolean unused = new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS);
        }
    }

    private static String model(int number) {
        return "m" + number;
    }

    @Test
    void noRequestIsLostWhileModelsMoveAndPodsComeAndGo() throws Exception {
        gateway.measure();
        gateway.onWake((namespace, revision) ->
                owner.execute(() -> pool.wake(revision.substring(0, revision.indexOf("-predictor")))));
        Object unusedTicks = owner.scheduleWithFixedDelay(
                () -> pool.tick((service, revision) -> gateway.load("default", revision)), 1, 1, TimeUnit.SECONDS);
        PodServer first = join("pod-1");
        PodServer second = join("pod-2");
        for (int i = 0; i < MODELS; i++) {
            String name = model(i);
            gateway.serve(name, name + "-predictor-00001");
            PooledService service = new PooledService(
                    new Owner("serving.kserve.io/v1beta1", "InferenceService", name, "default", name + "-uid"),
                    Set.of(name + "-predictor-00001"),
                    new SharedModel(
                            "pool",
                            "gs://models/" + name,
                            16 * MIB,
                            false,
                            1,
                            4,
                            JsonNodeFactory.instance.objectNode()));
            service.proven = true;
            owner.execute(() -> pool.put(service));
        }
        until("both pods join", () -> pool.ready() == 2);

        Queue<String> lost = new ConcurrentLinkedQueue<>();
        AtomicInteger answers = new AtomicInteger();
        CountDownLatch stopping = new CountDownLatch(1);
        ExecutorService clients = Threads.pool("client", 6);
        HttpClient client = HttpClient.newHttpClient();
        for (int c = 0; c < 6; c++) {
            Random random = new Random(c);
            clients.execute(() -> {
                try {
                    while (!stopping.await(3, TimeUnit.MILLISECONDS)) {
                        // A few models have most requests.
                        String name = model((int) (MODELS * Math.pow(random.nextDouble(), 3)));
                        HttpResponse<String> answer = client.send(
                                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + gateway.port()
                                                + "/serving/default/" + name + "/v2/models/" + name + "/infer"))
                                        .timeout(Duration.ofSeconds(60))
                                        .POST(HttpRequest.BodyPublishers.ofString("{}"))
                                        .build(),
                                HttpResponse.BodyHandlers.ofString());
                        answers.incrementAndGet();
                        if (answer.statusCode() != 200) {
                            lost.add(name + " " + answer.statusCode() + " " + answer.body());
                        }
                    }
                } catch (IOException e) {
                    lost.add(e.toString());
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
        }
        until("models displace each other", () -> unloads.get() >= 5 && answers.get() > 300);

        PodServer third = join("pod-3");
        until("the new pod gets models", () -> !third.models.isEmpty());
        pods.put("pod-1", new PoolPod(first.holder, false, true, true));
        tell();
        until("the pod that ends has nothing left", first.models::isEmpty);
        pods.remove("pod-1");
        tell();
        first.stop();
        int before = answers.get();
        until("requests go on", () -> answers.get() > before + 300);

        stopping.countDown();
        clients.shutdown();
        assertThat(clients.awaitTermination(60, TimeUnit.SECONDS)).isTrue();
        assertThat(lost)
                .as("lost of " + answers + ", with " + loads + " loads and " + unloads + " unloads")
                .isEmpty();
        assertThat(third.models.size() + second.models.size()).isLessThanOrEqualTo(16);
    }
}
