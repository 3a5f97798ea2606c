// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import static io.nereid.control.operator.gateway.GatewayFixture.settings;
import static io.nereid.control.operator.gateway.GatewayFixture.to;
import static io.nereid.control.operator.gateway.GatewayFixture.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.control.api.store.ResourceStore.Change;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The load of gateways over sockets: what they tell, and how it is added up. */
class GatewayStatisticsTest {
    private static final String PATH = "/serving/default/iris/v1";

    private final GatewayFixture first = new GatewayFixture();
    private final GatewayFixture second = new GatewayFixture();
    private final List<String> woken = new CopyOnWriteArrayList<>();
    private final GatewayStatistics statistics =
            new GatewayStatistics(Clock.system(), (namespace, revision) -> woken.add(namespace + "/" + revision));

    @AfterEach
    void close() {
        statistics.close();
        first.close();
        second.close();
    }

    private static GatewayStatistics.Address at(StatisticsServer server) {
        return new GatewayStatistics.Address("127.0.0.1", server.port());
    }

    private RevisionLoad load() {
        return statistics.load("default", "r1");
    }

    @Test
    void theAutoscalerIsToldOfWaitingRequestsAtOnceAndOfTheLoadOfAllGateways() throws Exception {
        for (GatewayFixture one : List.of(first, second)) {
            one.revision(Change.Kind.ADDED, "r1", settings(0));
            one.route(Change.Kind.ADDED, "iris", to("r1", 100));
        }
        // The first one has no periodic reports: what arrives was told at once.
        try (StatisticsServer a = new StatisticsServer(0, first.sampler);
                StatisticsServer b = new StatisticsServer(0, second.sampler)) {
            assertThat(statistics.isComplete()).isFalse();
            statistics.gateways(Set.of(at(a), at(b)));
            until("both are heard", statistics::isComplete);
            CompletableFuture<HttpResponse<String>> one = first.post(PATH);
            until("the revision is woken", () -> woken.contains("default/r1"));
            first.sampler.start();
            second.sampler.start();
            CompletableFuture<HttpResponse<String>> two = second.post(PATH);
            until("both wait", () -> load().waiting() == 2);
            until("the mean rises", () -> load().concurrency() > 1.9);
            assertThat(load().replicas()).isEqualTo(0);
            assertThat(load().asleep()).isTrue();
            int before = woken.size();
            until("it is called again while they wait", () -> woken.size() > before + 2);

            HttpResponse<String> page = first.client.send(
                    HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + a.port() + "/stats"))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            assertThat(page.statusCode()).isEqualTo(200);
            assertThat(LoadReport.read(page.body()).revisions())
                    .singleElement()
                    .satisfies(r -> assertThat(r.waiting()).isEqualTo(1));

            GatewayFixture.Pod pod = first.new Pod("a");
            first.endpoint("r1", pod);
            second.endpoint("r1", pod);
            assertThat(one.get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
            assertThat(two.get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
            until(
                    "the load is over",
                    () -> load().active() == 0 && load().replicas() == 1 && load().concurrency() == 0);
        }
    }

    @Test
    void aRouteIsWaitedForUntilAllGatewaysFollowIt() throws Exception {
        Duration most = Duration.ofSeconds(60);
        Duration none = Duration.ZERO;
        assertThat(statistics.awaitRoute("default", "iris", "any", most))
                .as("without a gateway")
                .isTrue();
        String one = first.route(Change.Kind.ADDED, "iris", to("r1", 100));
        try (StatisticsServer a = new StatisticsServer(0, first.sampler);
                StatisticsServer b = new StatisticsServer(0, second.sampler)) {
            first.sampler.start();
            second.sampler.start();
            statistics.gateways(Set.of(at(a), at(b)));
            until("both are heard", statistics::isComplete);
            assertThat(statistics.awaitRoute("default", "iris", one, none))
                    .as("the second does not know it")
                    .isFalse();
            second.route(Change.Kind.ADDED, "iris", to("r1", 100));
            assertThat(statistics.awaitRoute("default", "iris", one, most)).isTrue();

            // A new route is followed when its revisions are known.
            for (GatewayFixture gateway : List.of(first, second)) {
                gateway.revision(Change.Kind.ADDED, "r1", settings(0));
            }
            String two = first.route(Change.Kind.MODIFIED, "iris", to("r1", 50), to("r2", 50));
            second.route(Change.Kind.MODIFIED, "iris", to("r1", 50), to("r2", 50));
            assertThat(statistics.awaitRoute("default", "iris", two, none)).isFalse();
            assertThat(statistics.awaitRoute("default", "iris", one, most)).isTrue();
            first.revision(Change.Kind.ADDED, "r2", settings(0));
            second.revision(Change.Kind.ADDED, "r2", settings(0));
            assertThat(statistics.awaitRoute("default", "iris", two, most)).isTrue();

            first.route(Change.Kind.DELETED, "iris", to("r1", 100));
            until("it is gone", () -> !followed(two));
        }
        until("gateways that are silent are not waited for", () -> followed("any"));
    }

    private boolean followed(String text) {
        try {
            return statistics.awaitRoute("default", "iris", text, Duration.ZERO);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aGatewayThatEndsDoesNotCountAndIsHeardAgainWhenItIsBack() {
        first.revision(Change.Kind.ADDED, "r1", settings(0));
        first.sampler.start();
        GatewayStatistics.Address address;
        try (StatisticsServer server = new StatisticsServer(0, first.sampler)) {
            address = at(server);
            statistics.gateways(Set.of(address));
            until("it is heard", statistics::isComplete);
        }
        until("it is silent", () -> !statistics.isComplete());
        try (StatisticsServer again = new StatisticsServer(address.port(), first.sampler)) {
            until("it is heard again", statistics::isComplete);
            assertThat(statistics.gateways()).isEqualTo(1);
        }
    }
}
