// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Requests of another component, such as an explainer, that go through the predictor's activator. */
class NestedRequestTest {
    private final GatewayFixture fixture = new GatewayFixture();
    private final List<HttpExchange> visits = new ArrayList<>();
    private final List<InferenceEngine> engines = new ArrayList<>();

    private boolean visit(TestExchange x) {
        return fixture.gateway.runNested(x, "default", "iris", (visit, engine) -> {
            visits.add(visit);
            engines.add(engine);
        });
    }

    private static TestExchange explain() {
        return TestExchange.post("/v1/models/iris:explain", "{}");
    }

    @Test
    void nestedRequestsSeeTheRevisionsModelsUnderTheNamesOfClients() {
        fixture.route("r1");
        fixture.open("r1", 0, 1);
        fixture.engine.models.add("default/r1");
        assertThat(visit(explain())).isTrue();
        assertThat(engines.get(0).metadata(ModelRef.latest("iris")).id().model())
                .isEqualTo("iris");
        assertThatThrownBy(() -> engines.get(0).metadata(ModelRef.latest("default/r1")))
                .isInstanceOf(ServingException.class);
    }

    @Test
    void aNestedRequestIsCountedUntilItsResponse() {
        fixture.route("r1");
        RevisionActivator activator = fixture.open("r1", 1, 1);
        TestExchange x = explain();
        visit(x);
        assertThat(activator.activeNow()).isEqualTo(1);
        fixture.predict();
        assertThat(activator.waitingNow()).isEqualTo(1);
        visits.get(0).reply(HttpReply.json(200, "{}"));
        assertThat(x.status()).isEqualTo(200);
        assertThat(activator.waitingNow()).isZero();
    }

    @Test
    void aNestedRequestWakesARevisionAndWaitsForIt() {
        fixture.route("r1");
        RevisionActivator activator = fixture.open("r1", 0, 0);
        assertThat(visit(explain())).isTrue();
        assertThat(visits).isEmpty();
        assertThat(fixture.woken).containsExactly("default/r1");
        activator.capacity(1);
        fixture.executor.runAll();
        assertThat(visits).hasSize(1);
    }

    @Test
    void nestedRequestsAreNotReportedToThePredictorsListener() {
        fixture.route("r1");
        RevisionActivator activator = fixture.open("r1", 0, 1);
        List<String> recorded = new ArrayList<>();
        activator.listener(head -> {
            recorded.add(head.path());
            return null;
        });
        visit(explain());
        activator.reject("broken");
        visit(explain());
        assertThat(recorded).isEmpty();
        activator.reject(null);
        fixture.predict();
        assertThat(recorded).containsExactly("/v1/models/iris:predict");
    }

    @Test
    void childProcessesAndTransformersDoNotTakeNestedRequests() {
        fixture.route("r1");
        fixture.gateway.openActivator("default", "r1", GatewayFixture.settings(0, 10), new Processes(List.of()));
        assertThat(visit(explain())).isFalse();
        fixture.open("r1", 0, 1);
        assertThat(visit(explain())).isTrue();
        fixture.route(
                List.of(new IngressRule("iris.example.com", "", null, null)),
                Map.of(
                        Component.PREDICTOR, GatewayFixture.backend(GatewayFixture.target("r1", 100)),
                        Component.TRANSFORMER, GatewayFixture.backend(GatewayFixture.target("t1", 100))));
        assertThat(visit(explain())).isFalse();
        assertThat(visits).hasSize(1);
    }

    @Test
    void anUnknownServiceIsRejected() {
        assertThatThrownBy(() -> visit(explain())).hasMessageContaining("there is no service 'iris'");
    }
}
