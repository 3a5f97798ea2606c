// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Fakes.FixedClock;
import io.nereid.control.gateway.Fakes.HoldingCodec;
import io.nereid.control.gateway.Fakes.ManualExecutor;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.Fakes.TestHead;
import io.nereid.control.gateway.Fakes.TestTranscoder;
import io.nereid.control.gateway.Fakes.TestUpstream;
import io.nereid.control.gateway.Fakes.TestVirtualHost;
import io.nereid.control.gateway.Fakes.TestVirtualHostFactory;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.activator.RevisionActivator.Settings;
import io.nereid.control.gateway.upstream.RevisionTarget.Models;
import io.nereid.tensor.ByteBudget;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/** A gateway with fakes around it. Confined to the test's thread. */
public final class GatewayFixture {
    public final FixedClock clock = new FixedClock();
    public final ManualExecutor executor = new ManualExecutor();
    final TestVirtualHostFactory hostFactory = new TestVirtualHostFactory();
    public final TestUpstream upstream = new TestUpstream();
    public final TestTranscoder transcoder = new TestTranscoder();
    public final HoldingCodec holdingCodec = new HoldingCodec();
    public final TestEngine engine = new TestEngine();
    public final List<String> woken = new ArrayList<>();
    public final ByteBudget budget = new ByteBudget(1000);
    final Random random = new Random(42);
    public final Gateway gateway = new Gateway(
            engine,
            engine,
            (e, c) -> List.of(holdingCodec),
            upstream,
            transcoder,
            clock,
            (namespace, revision) -> woken.add(namespace + "/" + revision),
            executor,
            budget,
            random::nextInt);

    public GatewayFixture() {
        gateway.hostFactory(hostFactory);
    }

    public static Settings settings(int concurrency, int held) {
        return new Settings("iris", concurrency, 0, Duration.ofSeconds(30), held, 2);
    }

    public static Models model(String revision) {
        return new Models("default/" + revision, false, "iris");
    }

    public RevisionActivator open(String revision, int concurrency, int replicas) {
        RevisionActivator activator =
                gateway.openActivator("default", revision, settings(concurrency, 10), model(revision));
        activator.capacity(replicas);
        return activator;
    }

    public static Backend backend(Target... targets) {
        return new Backend(List.of(targets), List.of(), null);
    }

    public static Target target(String revision, int percent) {
        return new Target(revision, percent, null);
    }

    public void route(List<IngressRule> rules, Map<Component, Backend> components) {
        gateway.route("default", "iris", new Route("default", "iris", "InferenceService", rules, components, ""));
    }

    /** Iris under its host, one predictor. */
    public void route(String revision) {
        route(
                List.of(new IngressRule("iris.example.com", "", null, null)),
                Map.of(Component.PREDICTOR, backend(target(revision, 100))));
    }

    public @Nullable TestVirtualHost find(@Nullable String host, String path) {
        return (TestVirtualHost) gateway.find(TestHead.of(host, path));
    }

    /** Sends a request to iris. */
    public TestExchange predict() {
        TestExchange exchange = TestExchange.post("/v1/models/iris:predict", "0123456789");
        ((TestVirtualHost) java.util.Objects.requireNonNull(
                        gateway.find(TestHead.of("iris.example.com", exchange.path()))))
                .handle(exchange);
        return exchange;
    }
}
