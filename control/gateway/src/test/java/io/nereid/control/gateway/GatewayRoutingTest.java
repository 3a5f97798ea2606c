// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.Fakes.TestHead;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;

class GatewayRoutingTest {
    private static final IngressRule FRONT = new IngressRule("iris.example.com", "", null, null);

    private final GatewayFixture fixture = new GatewayFixture();

    @Test
    void aHostIsFoundWhateverItsCaseAndPort() {
        RevisionActivator activator = fixture.open("r1", 0, 1);
        fixture.route("r1");
        for (String host :
                List.of("iris.example.com", "IRIS.example.COM", "iris.example.com:8080", "iris.example.com.:8080")) {
            assertThat(fixture.find(host, "/v1/models"))
                    .as(host)
                    .isSameAs(activator.routes().at(""));
        }
        assertThat(fixture.find("iris.example.org", "/v1/models")).isNull();
        assertThat(fixture.find(null, "/v1/models")).isNull();
    }

    @Test
    void aRequestForAServiceThatIsNotRestoredYetIsUnavailable() {
        fixture.gateway.restoring(true);
        for (VirtualHosts.Head early : List.of(
                TestHead.of("iris.example.com", "/v1/models/iris:predict"),
                TestHead.of("127.0.0.1:8080", "/serving/default/iris/v1/models/iris:predict"))) {
            assertThatThrownBy(() -> fixture.gateway.find(early))
                    .asInstanceOf(InstanceOfAssertFactories.type(ServingException.class))
                    .extracting(ServingException::code)
                    .isEqualTo(ErrorCode.UNAVAILABLE);
        }
        for (String own : List.of("localhost:8080", "127.0.0.1", "[::1]:8080")) {
            assertThat(fixture.gateway.find(TestHead.of(own, "/v1/models/iris:predict")))
                    .isNull();
        }
        fixture.gateway.restoring(false);
        assertThat(fixture.gateway.find(TestHead.of("iris.example.com", "/v1/models/iris:predict")))
                .isNull();
    }

    @Test
    void addressesOfSixteenBytesKeepTheirBrackets() {
        assertThat(HostPathTable.host("[::1]:8080")).isEqualTo("[::1]");
        assertThat(HostPathTable.host("[::1]")).isEqualTo("[::1]");
        assertThat(HostPathTable.host("127.0.0.1:80")).isEqualTo("127.0.0.1");
    }

    @Test
    void theBeginningOfThePathIsFoundByWholeSegmentsLongestFirst() {
        fixture.open("r1", 0, 1);
        fixture.open("r2", 0, 1);
        fixture.route(
                List.of(
                        new IngressRule("", "/serving/default/iris", null, null),
                        new IngressRule("", "/serving/default/iris/canary", Component.TRANSFORMER, null)),
                Map.of(
                        Component.PREDICTOR, GatewayFixture.backend(GatewayFixture.target("r1", 100)),
                        Component.TRANSFORMER, GatewayFixture.backend(GatewayFixture.target("r2", 100))));
        assertThat(fixture.find("any.host", "/serving/default/iris/v1/models/iris:predict"))
                .satisfies(s -> assertThat(s.prefix()).isEqualTo("/serving/default/iris"));
        assertThat(fixture.find(null, "/serving/default/iris")).isNotNull();
        assertThat(fixture.find("h", "/serving/default/iris/canary/v2"))
                .satisfies(s -> assertThat(s.prefix()).isEqualTo("/serving/default/iris/canary"));
        assertThat(fixture.find("h", "/serving/default/iris2/v1")).isNull();
        assertThat(fixture.find("h", "/serving/default")).isNull();
        assertThat(fixture.find("h", "/")).isNull();
    }

    @Test
    void anExactHostComesBeforeAPath() {
        RevisionActivator one = fixture.open("r1", 0, 1);
        fixture.open("r2", 0, 1);
        fixture.route("r1");
        fixture.gateway.route(
                "default",
                "other",
                new Route(
                        "default",
                        "other",
                        "InferenceService",
                        List.of(new IngressRule("", "/v1", null, null)),
                        Map.of(Component.PREDICTOR, GatewayFixture.backend(GatewayFixture.target("r2", 100))),
                        ""));
        assertThat(fixture.find("iris.example.com", "/v1/models"))
                .isSameAs(one.routes().at(""));
        assertThat(fixture.find("unknown", "/v1/models")).isNotNull();
    }

    @Test
    void theEntryPointIsTheTransformerOrTheExplainer() {
        RevisionActivator predictor = fixture.open("p", 0, 1);
        RevisionActivator transformer = fixture.open("t", 0, 1);
        RevisionActivator explainer = fixture.open("e", 0, 1);
        fixture.route(
                List.of(FRONT, new IngressRule("iris-predictor.example.com", "", Component.PREDICTOR, null)),
                Map.of(
                        Component.PREDICTOR, GatewayFixture.backend(GatewayFixture.target("p", 100)),
                        Component.TRANSFORMER, GatewayFixture.backend(GatewayFixture.target("t", 100)),
                        Component.EXPLAINER, GatewayFixture.backend(GatewayFixture.target("e", 100))));
        assertThat(fixture.find("iris.example.com", "/v1/models/iris:predict"))
                .isSameAs(transformer.routes().at(""));
        assertThat(fixture.find("iris.example.com", "/v1/models/iris:explain"))
                .isSameAs(explainer.routes().at(""));
        assertThat(fixture.find("iris.example.com", "/v2/models/iris/explain"))
                .isSameAs(explainer.routes().at(""));
        assertThat(fixture.find("iris-predictor.example.com", "/v1/models/iris:explain"))
                .isSameAs(predictor.routes().at(""));
    }

    @Test
    void aTagSelectsItsRevisionWhateverItsShare() {
        fixture.open("old", 0, 1);
        RevisionActivator canary = fixture.open("new", 0, 1);
        fixture.route(
                List.of(FRONT, new IngressRule("latest-iris.example.com", "", Component.PREDICTOR, "latest")),
                Map.of(
                        Component.PREDICTOR,
                        GatewayFixture.backend(new Target("old", 100, "prev"), new Target("new", 0, "latest"))));
        for (int i = 0; i < 50; i++) {
            assertThat(fixture.find("latest-iris.example.com", "/v1"))
                    .isSameAs(canary.routes().at(""));
            assertThat(fixture.find("iris.example.com", "/v1"))
                    .isNotSameAs(canary.routes().at(""));
        }
    }

    @Test
    void aTaggedRevisionIsExplainedByItself() {
        fixture.open("old", 0, 1);
        RevisionActivator canary = fixture.open("new", 0, 1);
        RevisionActivator explainer = fixture.open("e", 0, 1);
        fixture.route(
                List.of(FRONT, new IngressRule("latest-iris.example.com", "", null, "latest")),
                Map.of(
                        Component.PREDICTOR,
                        GatewayFixture.backend(new Target("old", 100, "prev"), new Target("new", 0, "latest")),
                        Component.EXPLAINER,
                        GatewayFixture.backend(GatewayFixture.target("e", 100))));
        assertThat(fixture.find("latest-iris.example.com", "/v1/models/iris:explain"))
                .isSameAs(canary.routes().at(""));
        assertThat(fixture.find("iris.example.com", "/v1/models/iris:explain"))
                .isSameAs(explainer.routes().at(""));
    }

    @Test
    void sharesAreKept() {
        fixture.open("old", 0, 1);
        RevisionActivator canary = fixture.open("new", 0, 1);
        fixture.route(
                List.of(FRONT),
                Map.of(
                        Component.PREDICTOR,
                        GatewayFixture.backend(GatewayFixture.target("old", 90), GatewayFixture.target("new", 10))));
        int hits = 0;
        for (int i = 0; i < 10_000; i++) {
            hits += fixture.find("iris.example.com", "/v1") == canary.routes().at("") ? 1 : 0;
        }
        // the seed is fixed; three standard deviations are 90
        assertThat(hits).isBetween(910, 1090);
    }

    @Test
    void theSameValueOfTheStickyHeaderKeepsItsRevision() {
        fixture.open("old", 0, 1);
        RevisionActivator canary = fixture.open("new", 0, 1);
        fixture.route(
                List.of(FRONT),
                Map.of(
                        Component.PREDICTOR,
                        new Backend(
                                List.of(GatewayFixture.target("old", 70), GatewayFixture.target("new", 30)),
                                List.of(),
                                "X-User")));
        Map<String, Set<VirtualHost>> seen = new HashMap<>();
        int hits = 0;
        for (int i = 0; i < 3000; i++) {
            String user = "user-" + (i % 1000);
            VirtualHost site = fixture.gateway.find(new TestHead("iris.example.com", "/v1", Map.of("x-user", user)));
            seen.computeIfAbsent(user, u -> new HashSet<>()).add(site);
            hits += i < 1000 && site == canary.routes().at("") ? 1 : 0;
        }
        assertThat(seen.values()).allSatisfy(s -> assertThat(s).hasSize(1));
        assertThat(hits).isBetween(250, 350);
    }

    @Test
    void aRevisionThatCannotServeIsSkipped() {
        RevisionActivator old = fixture.open("old", 0, 1);
        RevisionActivator canary = fixture.open("new", 0, 1);
        canary.reject("broken");
        fixture.route(
                List.of(FRONT),
                Map.of(
                        Component.PREDICTOR,
                        GatewayFixture.backend(GatewayFixture.target("new", 50), GatewayFixture.target("old", 50))));
        for (int i = 0; i < 50; i++) {
            assertThat(fixture.find("iris.example.com", "/v1"))
                    .isSameAs(old.routes().at(""));
        }
    }

    @Test
    void aServiceWithoutARunningRevisionReportsTheCause() {
        fixture.route("r1");
        assertThatThrownBy(() -> fixture.find("iris.example.com", "/v1"))
                .asInstanceOf(InstanceOfAssertFactories.type(ServingException.class))
                .satisfies(e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .satisfies(e -> assertThat(e.getMessage())
                        .isEqualTo("InferenceService default/iris is not ready: revision r1 is not running"));
    }

    @Test
    void aDeletedServiceIsNotFoundAndOldNamesAreRemoved() {
        fixture.open("r1", 0, 1);
        fixture.route("r1");
        fixture.route(
                List.of(new IngressRule("iris2.example.com", "", null, null)),
                Map.of(Component.PREDICTOR, GatewayFixture.backend(GatewayFixture.target("r1", 100))));
        assertThat(fixture.find("iris.example.com", "/v1")).isNull();
        assertThat(fixture.find("iris2.example.com", "/v1")).isNotNull();
        fixture.gateway.route("default", "iris", null);
        assertThat(fixture.find("iris2.example.com", "/v1")).isNull();
    }

    @Test
    void aPortServesItsComponentForEveryHostAndFollowsTheRoute() {
        VirtualHosts.Listener port = fixture.gateway.listen("default", "iris", Component.PREDICTOR, "127.0.0.1", 0);
        assertThat(port.port()).isEqualTo(4711);
        VirtualHosts hosts = java.util.Objects.requireNonNull(fixture.hostFactory.listening);
        assertThatThrownBy(() -> hosts.find(TestHead.of("x", "/v1")))
                .hasMessage("there is no service 'iris' in namespace 'default'");
        RevisionActivator one = fixture.open("r1", 0, 1);
        RevisionActivator two = fixture.open("r2", 0, 1);
        fixture.route("r1");
        assertThat(hosts.find(TestHead.of("x", "/v1"))).isSameAs(one.routes().at(""));
        fixture.route("r2");
        assertThat(hosts.find(TestHead.of(null, "/v1"))).isSameAs(two.routes().at(""));
    }

    @Test
    void inProcessCallsGoThroughTheActivator() {
        RevisionActivator activator = fixture.open("r1", 0, 1);
        fixture.route("r1");
        CompletableFuture<UpstreamResponse> answer = fixture.gateway
                .call("default", "iris", null, "/v1/models/iris:predict", List.of(), Fakes.region("{}"))
                .toCompletableFuture();
        assertThat(activator.activeNow()).isEqualTo(1);
        fixture.holdingCodec.answer(0, 200);
        assertThat(answer).isCompletedWithValueMatching(a -> a.status() == 200);
        assertThat(fixture.gateway
                        .call("default", "no", null, "/", List.of(), Fakes.region("{}"))
                        .toCompletableFuture())
                .isCompletedExceptionally();
    }

    @Test
    void copiesGoToTheMirrorAfterTheOriginalAndTheirFailuresAreHidden() {
        fixture.open("r1", 0, 1);
        RevisionActivator shadow = fixture.open("shadow", 0, 1);
        mirrored(100);
        TestExchange x = fixture.predict();
        assertThat(fixture.holdingCodec.requests).hasSize(1);
        fixture.executor.runAll();
        assertThat(fixture.holdingCodec.requests).hasSize(2);
        assertThat(fixture.holdingCodec.requests.get(1).header("kserve-mirrored"))
                .isEqualTo("true");
        assertThat(shadow.activeNow()).isEqualTo(1);

        fixture.holdingCodec.answer(1, 500);
        assertThat(x.status()).isZero();
        fixture.holdingCodec.answer(0, 200);
        assertThat(x.status()).isEqualTo(200);
        assertThat(metric("mirrored_total", "r1")).isEqualTo("1");
    }

    @Test
    void copiesAreBoundedAndAMirrorAtZeroIsWokenButHoldsNone() {
        fixture.open("r1", 0, 1);
        RevisionActivator shadow = fixture.open("shadow", 0, 1);
        mirrored(100);
        for (int i = 0; i < 5; i++) {
            fixture.predict();
        }
        fixture.executor.runAll();
        assertThat(shadow.activeNow()).isEqualTo(2);
        assertThat(metric("mirror_dropped_total", "r1")).isEqualTo("3");
        shadow.capacity(0);
        fixture.predict();
        fixture.executor.runAll();
        assertThat(shadow.waitingNow()).isZero();
        assertThat(fixture.woken).containsExactly("default/shadow");
    }

    @Test
    void aShareOfTheRequestsIsMirrored() {
        fixture.open("r1", 0, 1);
        fixture.open("shadow", 0, 1);
        mirrored(25);
        for (int i = 0; i < 400; i++) {
            int before = fixture.holdingCodec.requests.size();
            fixture.predict();
            fixture.executor.runAll();
            for (int n = before; n < fixture.holdingCodec.requests.size(); n++) {
                fixture.holdingCodec.answer(n, 200);
            }
        }
        assertThat(Integer.parseInt(metric("mirrored_total", "r1"))).isBetween(70, 130);
    }

    private void mirrored(int percent) {
        fixture.route(
                List.of(FRONT),
                Map.of(
                        Component.PREDICTOR,
                        new Backend(
                                List.of(GatewayFixture.target("r1", 100)),
                                List.of(GatewayFixture.target("shadow", percent)),
                                null)));
    }

    private String metric(String name, String revision) {
        String start =
                "nereid_gateway_" + name + "{namespace=\"default\",service=\"iris\",revision=\"" + revision + "\"} ";
        return MetricsWriter.page(MetricsFormat.TEXT, fixture.gateway::writeMetrics)
                .lines()
                .filter(l -> l.startsWith(start))
                .findFirst()
                .orElseThrow()
                .substring(start.length());
    }
}
