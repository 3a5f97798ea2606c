// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.base.access.Operation;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Fakes;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.Fakes.TestHead;
import io.nereid.control.gateway.Fakes.TestVirtualHost;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.GatewayFixture;
import io.nereid.control.gateway.TestEngine;
import io.nereid.control.gateway.upstream.RevisionTarget.Handler;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class RevisionActivatorConcurrencyTest {
    private static final int CALLERS = 4;
    private static final int EACH = 3000;
    private static final int LIMIT = 3;
    private static final int MOST_REPLICAS = 4;

    private final AtomicInteger running = new AtomicInteger();
    private final AtomicInteger most = new AtomicInteger();

    @Test
    void underConcurrentEventsEveryRequestEndsOnceAndTheLimitHolds() throws Exception {
        ExecutorService workers = Threads.pool("test-workers", 3);
        ExecutorService callers = Threads.pool("test-callers", CALLERS + 1);
        ByteBudget budget = new ByteBudget(1 << 20);
        Gateway gateway = gateway(new Fakes.TestUpstream(), workers, budget, "InferenceGraph");
        RevisionActivator activator = gateway.openActivator(
                "default",
                "r1",
                new RevisionActivator.Settings("g", LIMIT, 50, Duration.ofMinutes(5), 500, 1),
                new Handler(List.of(working(workers))));
        activator.capacity(MOST_REPLICAS);
        List<CompletableFuture<List<TestExchange>>> futures = new ArrayList<>();
        for (int c = 0; c < CALLERS; c++) {
            Random random = new Random(c);
            futures.add(CompletableFuture.supplyAsync(() -> call(gateway, random), callers));
        }
        CompletableFuture<Void> scaler = CompletableFuture.runAsync(
                () -> {
                    Random random = new Random(99);
                    for (int i = 0; i < 500; i++) {
                        activator.capacity(random.nextInt(MOST_REPLICAS + 1));
                        activator.sweep(Clock.system().nanos());
                        activator.sample(Clock.system().nanos());
                    }
                    activator.capacity(MOST_REPLICAS);
                },
                callers);

        List<TestExchange> all = new ArrayList<>();
        for (CompletableFuture<List<TestExchange>> future : futures) {
            all.addAll(future.get(60, TimeUnit.SECONDS));
        }
        scaler.get(60, TimeUnit.SECONDS);
        CompletableFuture<Void> closed = activator.close().toCompletableFuture();
        closed.get(60, TimeUnit.SECONDS);
        callers.shutdown();
        workers.shutdown();

        assertThat(all).hasSize(CALLERS * EACH);
        int gone = 0;
        int ok = 0;
        for (TestExchange x : all) {
            if (x.status() == 0) {
                gone++;
            } else {
                assertThat(x.status()).isIn(200, 503);
                ok += x.status() == 200 ? 1 : 0;
            }
        }
        assertThat(ok).isPositive();
        assertThat(gone).isLessThanOrEqualTo(all.size() / 4);
        // A permit is released a moment before its handler is notified of the cancellation, for each client that
        // cancels.
        assertThat(most.get()).isBetween(2, LIMIT * MOST_REPLICAS + CALLERS);
        assertThat(activator.activeNow()).isZero();
        assertThat(activator.waitingNow()).isZero();
        assertThat(budget.used()).isZero();
    }

    @Test
    void noRequestIsLostWhileTheOnlyReplicaComesAndGoes() throws Exception {
        ExecutorService threads = Threads.pool("test", 4);
        Gateway gateway = gateway(new AnsweringUpstream(), threads, new ByteBudget(1 << 20), "InferenceService");
        Processes one = new Processes(List.of(new Replica("127.0.0.1", 8080, 0)));
        RevisionActivator activator = gateway.openActivator("default", "r1", RevisionActivator.Settings.of("g"), one);
        activator.capacity(1);
        AtomicBoolean over = new AtomicBoolean();
        CompletableFuture<Void> flickering = CompletableFuture.runAsync(
                () -> {
                    while (!over.get()) {
                        activator.destination(new Processes(List.of()));
                        activator.destination(one);
                    }
                },
                threads);
        List<TestExchange> all = new ArrayList<>();
        for (int i = 0; i < 200_000; i++) {
            while (activator.waitingNow() > 1_000) {
                // The thread above may not run for a while; more than 10,000 requests are not held.
                Thread.onSpinWait();
            }
            TestExchange x = TestExchange.post("/", "body");
            all.add(x);
            ((TestVirtualHost) java.util.Objects.requireNonNull(gateway.find(TestHead.of("g", "/")))).handle(x);
        }
        over.set(true);
        flickering.get(60, TimeUnit.SECONDS);
        activator.close().toCompletableFuture().get(60, TimeUnit.SECONDS);
        threads.shutdown();
        assertThat(all.stream().filter(x -> x.status() != 200).map(TestExchange::text))
                .isEmpty();
    }

    /** A gateway whose host g leads to revision r1. */
    private static Gateway gateway(UpstreamClient upstream, ExecutorService threads, ByteBudget budget, String kind) {
        Gateway gateway = new Gateway(
                new TestEngine(),
                new TestEngine(),
                (e, c) -> List.of(),
                upstream,
                new Fakes.TestTranscoder(),
                Clock.system(),
                (n, r) -> {},
                threads,
                budget,
                bound -> 0);
        gateway.hostFactory(new Fakes.TestVirtualHostFactory());
        gateway.route(
                "default",
                "g",
                new Route(
                        "default",
                        "g",
                        kind,
                        List.of(new Route.IngressRule("g", "", null, null)),
                        Map.of(Component.PREDICTOR, GatewayFixture.backend(GatewayFixture.target("r1", 100))),
                        ""));
        return gateway;
    }

    /** Answers every request at once. Thread-safe. */
    private static final class AnsweringUpstream implements UpstreamClient {
        @Override
        public void forward(HttpExchange exchange, Address address, String path, ForwardOptions options) {
            exchange.reply(HttpReply.json(200, "{}"));
        }

        @Override
        public GrpcListener forward(GrpcCall call, Address address, ForwardOptions options) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletionStage<UpstreamResponse> send(
                String method, String url, List<Header> headers, byte[] body, ForwardOptions options) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void close() {}
    }

    private List<TestExchange> call(Gateway gateway, Random random) {
        List<TestExchange> mine = new ArrayList<>();
        for (int i = 0; i < EACH; i++) {
            TestExchange x = TestExchange.post("/", "body");
            mine.add(x);
            ((TestVirtualHost) java.util.Objects.requireNonNull(gateway.find(TestHead.of("g", "/")))).handle(x);
            if (random.nextInt(10) == 0) {
                x.leave();
            }
        }
        return mine;
    }

    private ProtocolCodec working(ExecutorService workers) {
        return new ProtocolCodec() {
            @Override
            public String name() {
                return "working";
            }

            @Override
            public List<HttpRoute> httpRoutes() {
                return List.of(HttpRoute.post("/", Operation.INFERENCE, x -> {
                    AtomicInteger once = new AtomicInteger();
                    most.accumulateAndGet(running.incrementAndGet(), Math::max);
                    // A cancellation releases the permit, as a reply does.
                    x.onCancel(() -> {
                        if (once.getAndIncrement() == 0) {
                            running.decrementAndGet();
                        }
                    });
                    workers.execute(() -> {
                        if (once.getAndIncrement() == 0) {
                            running.decrementAndGet();
                        }
                        x.reply(HttpReply.json(200, "{}"));
                    });
                }));
            }
        };
    }
}
