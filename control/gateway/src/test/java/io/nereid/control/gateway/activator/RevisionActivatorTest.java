// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.gateway.Fakes;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.GatewayFixture;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class RevisionActivatorTest {
    private final GatewayFixture fixture = new GatewayFixture();

    RevisionActivatorTest() {
        fixture.route("r1");
    }

    @Test
    void aRequestPassesAtOnceAndIsCountedUntilItsReply() {
        RevisionActivator activator = fixture.open("r1", 0, 1);
        TestExchange x = fixture.predict();
        assertThat(fixture.holdingCodec.requests).hasSize(1);
        assertThat(activator.sample(fixture.clock.nanos()).active()).isEqualTo(1);

        fixture.holdingCodec.answer(0, 200);

        assertThat(x.status()).isEqualTo(200);
        assertThat(activator.sample(fixture.clock.nanos()).active()).isZero();
        assertThat(MetricsWriter.page(MetricsFormat.TEXT, fixture.gateway::writeMetrics))
                .contains(
                        "nereid_gateway_requests_total{namespace=\"default\",service=\"iris\",revision=\"r1\",code=\"2xx\"}"
                                + " 1\n")
                .contains("nereid_gateway_in_flight{namespace=\"default\",service=\"iris\",revision=\"r1\"} 0\n");
    }

    @Test
    void atZeroRequestsAreHeldAndTheRevisionIsWokenOnce() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        TestExchange first = fixture.predict();
        TestExchange second = fixture.predict();

        assertThat(fixture.woken).containsExactly("default/r1");
        assertThat(fixture.holdingCodec.requests).isEmpty();
        assertThat(activator.sample(fixture.clock.nanos()))
                .satisfies(l -> assertThat(l.waiting()).isEqualTo(2))
                .satisfies(l -> assertThat(l.active()).isEqualTo(2));
        assertThat(fixture.budget.used()).isEqualTo(20);

        activator.capacity(1);
        assertThat(fixture.executor.runAll()).isEqualTo(2);

        assertThat(fixture.budget.used()).isZero();
        assertThat(fixture.holdingCodec.requests).hasSize(2);
        fixture.holdingCodec.answer(0, 200);
        fixture.holdingCodec.answer(1, 200);
        assertThat(first.status()).isEqualTo(200);
        assertThat(second.text()).contains("1");
    }

    @Test
    void aRevisionThatIsAtZeroAgainIsWokenAgain() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        fixture.predict();
        activator.capacity(1);
        activator.capacity(0);
        fixture.predict();
        assertThat(fixture.woken).containsExactly("default/r1", "default/r1");
    }

    @Test
    void healthRequestsDoNotWakeAndModelRequestsDo() {
        fixture.open("r1", 0, 0);
        TestExchange health = new TestExchange("GET", "/v2/health/ready", java.util.Map.of(), "");
        fixture.find("iris.example.com", health.path()).handle(health);
        assertThat(health.status()).isEqualTo(200);
        assertThat(fixture.woken).isEmpty();

        TestExchange model = new TestExchange("GET", "/v1/models/iris", java.util.Map.of(), "");
        fixture.find("iris.example.com", model.path()).handle(model);
        assertThat(fixture.woken).hasSize(1);
        assertThat(model.status()).isZero();
    }

    @Test
    void requestsBeyondTheHeldLimitAreRejectedWithRetryAfter() {
        fixture.open("r1", 0, 0);
        for (int i = 0; i < 10; i++) {
            assertThat(fixture.predict().status()).isZero();
        }
        TestExchange refused = fixture.predict();
        assertThat(refused.status()).isEqualTo(503);
        assertThat(refused.text()).contains("pending request queue full");
        assertThat(refused.replyHeader("retry-after")).isEqualTo("5");
    }

    @Test
    void theBytesOfHeldRequestsAreBounded() {
        fixture.open("r1", 0, 0);
        assertThat(fixture.budget.tryReserve(985)).isTrue();
        assertThat(fixture.predict().status()).isZero();
        assertThat(fixture.predict().status()).isEqualTo(503);
        assertThat(fixture.budget.used()).isEqualTo(995);
    }

    @Test
    void retryAfterIsAsLongAsTheLastStartTook() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        fixture.predict();
        fixture.clock.forward(2100);
        activator.capacity(1);
        fixture.executor.runAll();
        activator.capacity(0);
        activator.reject("the model cannot be loaded");
        assertThat(fixture.predict().replyHeader("retry-after")).isEqualTo("3");
    }

    @Test
    void aRequestThatIsHeldTooLongIsRejectedAndTheNextOneWakesAgain() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        TestExchange x = fixture.predict();
        assertThat(activator.context().withQueue).as("swept").containsExactly(activator);
        fixture.clock.forward(29_999);
        fixture.gateway.sweep(fixture.clock.nanos());
        assertThat(x.status()).isZero();
        fixture.clock.forward(1);
        fixture.gateway.sweep(fixture.clock.nanos());
        assertThat(x.status()).isEqualTo(503);
        assertThat(x.text()).contains("no replica of revision r1 was ready in time");
        assertThat(x.replyHeader("retry-after")).isNotNull();
        assertThat(fixture.budget.used()).isZero();
        assertThat(activator.sample(fixture.clock.nanos()).active()).isZero();
        assertThat(activator.context().withQueue).as("swept").isEmpty();

        fixture.predict();
        assertThat(fixture.woken).hasSize(2);
    }

    @Test
    void aRequestThatIsCancelledWhileItWaitsIsRemoved() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        fixture.predict().leave();
        assertThat(activator.sample(fixture.clock.nanos()).waiting()).isZero();
        assertThat(activator.sample(fixture.clock.nanos()).active()).isZero();
        assertThat(fixture.budget.used()).isZero();
        activator.capacity(1);
        fixture.executor.runAll();
        assertThat(fixture.holdingCodec.requests).isEmpty();
    }

    @Test
    void rejectingEndsWaitingAndNewRequests() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        TestExchange waits = fixture.predict();
        activator.reject("the model cannot be loaded: no such file");
        assertThat(waits.status()).isEqualTo(503);
        assertThat(waits.text()).contains("the model cannot be loaded: no such file");
        assertThat(fixture.predict().status()).isEqualTo(503);
        activator.reject(null);
        activator.capacity(1);
        assertThat(fixture.predict().status()).isZero();
        assertThat(fixture.holdingCodec.requests).hasSize(1);
    }

    @Test
    void beyondTheLimitRequestsWaitInOrder() {
        fixture.open("r1", 1, 2);
        List<TestExchange> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            all.add(fixture.predict());
        }
        assertThat(fixture.holdingCodec.requests).hasSize(2);

        fixture.holdingCodec.answer(1, 200);
        fixture.executor.runAll();
        assertThat(fixture.holdingCodec.requests).hasSize(3);
        fixture.holdingCodec.answer(2, 200);
        assertThat(all.get(2).status()).isEqualTo(200);
        assertThat(all.get(3).status()).isZero();
        fixture.executor.runAll();
        assertThat(fixture.holdingCodec.requests).hasSize(4);
    }

    @Test
    void theQueueIsTenTimesTheLimitWhereRequestsAreDirectAndLongerElsewhere() {
        RevisionActivator activator = fixture.gateway.openActivator(
                "default", "r1", GatewayFixture.settings(1, 30), GatewayFixture.model("r1"));
        activator.capacity(1);
        for (int i = 0; i < 11; i++) {
            assertThat(fixture.predict().status()).isZero();
        }
        TestExchange over = fixture.predict();
        assertThat(over.status()).isEqualTo(503);
        assertThat(over.replyHeader("retry-after")).isEqualTo("1");

        activator.direct(false);
        assertThat(fixture.predict().status()).isZero();
    }

    @Test
    void aCancelledRequestReleasesItsPermit() {
        fixture.open("r1", 1, 1);
        TestExchange first = fixture.predict();
        fixture.predict();
        first.leave();
        fixture.executor.runAll();
        assertThat(fixture.holdingCodec.requests).hasSize(2);
    }

    @Test
    void moreReplicasAdmitMoreRequests() {
        RevisionActivator activator = fixture.open("r1", 1, 1);
        fixture.predict();
        fixture.predict();
        fixture.predict();
        activator.capacity(3);
        fixture.executor.runAll();
        assertThat(fixture.holdingCodec.requests).hasSize(3);
    }

    @Test
    void closingWaitsForTheLastRequestAndRejectsNewOnes() {
        RevisionActivator activator = fixture.open("r1", 1, 1);
        TestExchange runs = fixture.predict();
        TestExchange waits = fixture.predict();
        CompletableFuture<Void> closed = activator.close().toCompletableFuture();
        assertThat(closed).isNotDone();
        assertThat(fixture.predict().status()).isEqualTo(503);

        fixture.holdingCodec.answer(0, 200);
        assertThat(closed).isNotDone();
        fixture.executor.runAll();
        fixture.holdingCodec.answer(1, 200);

        assertThat(runs.status()).isEqualTo(200);
        assertThat(waits.status()).isEqualTo(200);
        assertThat(closed).isDone();
        assertThat(fixture.gateway.activator("default", "r1")).isNull();
    }

    @Test
    void closingAtZeroRejectsHeldRequests() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        TestExchange held = fixture.predict();
        assertThat(activator.close().toCompletableFuture()).isDone();
        assertThat(held.status()).isEqualTo(503);
    }

    @Test
    void concurrencyIsMeasuredOverTimeAndHeldRequestsCount() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        activator.sample(fixture.clock.nanos());
        fixture.predict();
        fixture.predict();
        fixture.clock.forward(500);
        activator.capacity(1);
        fixture.executor.runAll();
        fixture.holdingCodec.answer(0, 200);
        fixture.clock.forward(500);
        RevisionActivator.Load load = activator.sample(fixture.clock.nanos());
        assertThat(load.concurrency()).isBetween(1.49, 1.51);
        assertThat(load.requestsPerSecond()).isBetween(1.99, 2.01);
    }

    @Test
    void trafficCountsErrorsAndTheSlowestWithoutTheWaitingTime() {
        RevisionActivator activator = fixture.open("r1", 0, 0);
        fixture.predict();
        fixture.clock.forward(9000);
        activator.capacity(1);
        fixture.executor.runAll();
        fixture.clock.forward(20);
        fixture.holdingCodec.answer(0, 200);
        fixture.predict();
        fixture.holdingCodec.answer(1, 500);
        fixture.predict();
        fixture.holdingCodec.answer(2, 400);
        Traffic traffic = activator.traffic(fixture.clock.nanos());
        assertThat(traffic.requests()).isEqualTo(3);
        assertThat(traffic.errors()).isEqualTo(1);
        assertThat(traffic.p99Millis()).isBetween(20.0, 23.0);
        fixture.clock.forward(65_000);
        assertThat(activator.traffic(fixture.clock.nanos())).isEqualTo(Traffic.NONE);
    }

    @Test
    void aStreamIsInFlightUntilItEnds() {
        RevisionActivator activator = fixture.open("r1", 0, 1);
        TestExchange x = fixture.predict();
        io.nereid.transport.api.ResponseStream stream =
                fixture.holdingCodec.requests.get(0).stream(io.nereid.transport.api.HttpReply.json(200, "["));
        stream.send(Fakes.content("1"));
        assertThat(activator.sample(fixture.clock.nanos()).active()).isEqualTo(1);
        stream.end();
        assertThat(activator.sample(fixture.clock.nanos()).active()).isZero();
        assertThat(x.streamed).hasToString("1");
    }
}
