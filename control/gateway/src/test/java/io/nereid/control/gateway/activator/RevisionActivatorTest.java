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
    private final GatewayFixture bed = new GatewayFixture();

    RevisionActivatorTest() {
        bed.route("r1");
    }

    @Test
    void aRequestPassesAtOnceAndIsCountedUntilItsReply() {
        RevisionActivator activator = bed.open("r1", 0, 1);
        TestExchange x = bed.predict();
        assertThat(bed.parking.requests).hasSize(1);
        assertThat(activator.sample(bed.clock.nanos()).active()).isEqualTo(1);

        bed.parking.answer(0, 200);

        assertThat(x.status()).isEqualTo(200);
        assertThat(activator.sample(bed.clock.nanos()).active()).isZero();
        assertThat(MetricsWriter.page(MetricsFormat.TEXT, bed.gateway::writeMetrics))
                .contains(
                        "nereid_gateway_requests_total{namespace=\"default\",service=\"iris\",revision=\"r1\",code=\"2xx\"}"
                            + " 1\n")
                .contains("nereid_gateway_in_flight{namespace=\"default\",service=\"iris\",revision=\"r1\"} 0\n");
    }

    @Test
    void atZeroRequestsAreHeldAndTheRevisionIsWokenOnce() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        TestExchange first = bed.predict();
        TestExchange second = bed.predict();

        assertThat(bed.woken).containsExactly("default/r1");
        assertThat(bed.parking.requests).isEmpty();
        assertThat(activator.sample(bed.clock.nanos()))
                .satisfies(l -> assertThat(l.waiting()).isEqualTo(2))
                .satisfies(l -> assertThat(l.active()).isEqualTo(2));
        assertThat(bed.budget.used()).isEqualTo(20);

        activator.capacity(1);
        assertThat(bed.later.runAll()).isEqualTo(2);

        assertThat(bed.budget.used()).isZero();
        assertThat(bed.parking.requests).hasSize(2);
        bed.parking.answer(0, 200);
        bed.parking.answer(1, 200);
        assertThat(first.status()).isEqualTo(200);
        assertThat(second.text()).contains("1");
    }

    @Test
    void aRevisionThatWentToSleepAgainIsWokenAgain() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        bed.predict();
        activator.capacity(1);
        activator.capacity(0);
        bed.predict();
        assertThat(bed.woken).containsExactly("default/r1", "default/r1");
    }

    @Test
    void healthRequestsDoNotWakeAndModelRequestsDo() {
        bed.open("r1", 0, 0);
        TestExchange health = new TestExchange("GET", "/v2/health/ready", java.util.Map.of(), "");
        bed.find("iris.example.com", health.path()).handle(health);
        assertThat(health.status()).isEqualTo(200);
        assertThat(bed.woken).isEmpty();

        TestExchange model = new TestExchange("GET", "/v1/models/iris", java.util.Map.of(), "");
        bed.find("iris.example.com", model.path()).handle(model);
        assertThat(bed.woken).hasSize(1);
        assertThat(model.status()).isZero();
    }

    @Test
    void requestsBeyondTheHeldLimitAreRejectedWithRetryAfter() {
        bed.open("r1", 0, 0);
        for (int i = 0; i < 10; i++) {
            assertThat(bed.predict().status()).isZero();
        }
        TestExchange refused = bed.predict();
        assertThat(refused.status()).isEqualTo(503);
        assertThat(refused.text()).contains("pending request queue full");
        assertThat(refused.replyHeader("retry-after")).isEqualTo("5");
    }

    @Test
    void theBytesOfHeldRequestsAreBounded() {
        bed.open("r1", 0, 0);
        assertThat(bed.budget.tryReserve(985)).isTrue();
        assertThat(bed.predict().status()).isZero();
        assertThat(bed.predict().status()).isEqualTo(503);
        assertThat(bed.budget.used()).isEqualTo(995);
    }

    @Test
    void retryAfterIsAsLongAsTheLastStartTook() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        bed.predict();
        bed.clock.forward(2100);
        activator.capacity(1);
        bed.later.runAll();
        activator.capacity(0);
        activator.refuse("the model cannot be loaded");
        assertThat(bed.predict().replyHeader("retry-after")).isEqualTo("3");
    }

    @Test
    void aRequestThatIsHeldTooLongIsRejectedAndTheNextOneWakesAgain() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        TestExchange x = bed.predict();
        assertThat(activator.context().withQueue).as("swept").containsExactly(activator);
        bed.clock.forward(29_999);
        bed.gateway.sweep(bed.clock.nanos());
        assertThat(x.status()).isZero();
        bed.clock.forward(1);
        bed.gateway.sweep(bed.clock.nanos());
        assertThat(x.status()).isEqualTo(503);
        assertThat(x.text()).contains("no replica of revision r1 was ready in time");
        assertThat(x.replyHeader("retry-after")).isNotNull();
        assertThat(bed.budget.used()).isZero();
        assertThat(activator.sample(bed.clock.nanos()).active()).isZero();
        assertThat(activator.context().withQueue).as("swept").isEmpty();

        bed.predict();
        assertThat(bed.woken).hasSize(2);
    }

    @Test
    void aRequestThatIsCancelledWhileItWaitsIsRemoved() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        bed.predict().leave();
        assertThat(activator.sample(bed.clock.nanos()).waiting()).isZero();
        assertThat(activator.sample(bed.clock.nanos()).active()).isZero();
        assertThat(bed.budget.used()).isZero();
        activator.capacity(1);
        bed.later.runAll();
        assertThat(bed.parking.requests).isEmpty();
    }

    @Test
    void refusingRejectsWaitingAndNewRequests() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        TestExchange waits = bed.predict();
        activator.refuse("the model cannot be loaded: no such file");
        assertThat(waits.status()).isEqualTo(503);
        assertThat(waits.text()).contains("the model cannot be loaded: no such file");
        assertThat(bed.predict().status()).isEqualTo(503);
        activator.refuse(null);
        activator.capacity(1);
        assertThat(bed.predict().status()).isZero();
        assertThat(bed.parking.requests).hasSize(1);
    }

    @Test
    void beyondTheLimitRequestsWaitInOrder() {
        bed.open("r1", 1, 2);
        List<TestExchange> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            all.add(bed.predict());
        }
        assertThat(bed.parking.requests).hasSize(2);

        bed.parking.answer(1, 200);
        bed.later.runAll();
        assertThat(bed.parking.requests).hasSize(3);
        bed.parking.answer(2, 200);
        assertThat(all.get(2).status()).isEqualTo(200);
        assertThat(all.get(3).status()).isZero();
        bed.later.runAll();
        assertThat(bed.parking.requests).hasSize(4);
    }

    @Test
    void theQueueIsTenTimesTheLimitWhereRequestsAreDirectAndLongerElsewhere() {
        RevisionActivator activator =
                bed.gateway.open("default", "r1", GatewayFixture.settings(1, 30), GatewayFixture.model("r1"));
        activator.capacity(1);
        for (int i = 0; i < 11; i++) {
            assertThat(bed.predict().status()).isZero();
        }
        TestExchange over = bed.predict();
        assertThat(over.status()).isEqualTo(503);
        assertThat(over.replyHeader("retry-after")).isEqualTo("1");

        activator.serving(false);
        assertThat(bed.predict().status()).isZero();
    }

    @Test
    void aCancelledRequestReleasesItsPermit() {
        bed.open("r1", 1, 1);
        TestExchange first = bed.predict();
        bed.predict();
        first.leave();
        bed.later.runAll();
        assertThat(bed.parking.requests).hasSize(2);
    }

    @Test
    void moreReplicasAdmitMoreRequests() {
        RevisionActivator activator = bed.open("r1", 1, 1);
        bed.predict();
        bed.predict();
        bed.predict();
        activator.capacity(3);
        bed.later.runAll();
        assertThat(bed.parking.requests).hasSize(3);
    }

    @Test
    void closingWaitsForTheLastRequestAndRejectsNewOnes() {
        RevisionActivator activator = bed.open("r1", 1, 1);
        TestExchange runs = bed.predict();
        TestExchange waits = bed.predict();
        CompletableFuture<Void> closed = activator.close().toCompletableFuture();
        assertThat(closed).isNotDone();
        assertThat(bed.predict().status()).isEqualTo(503);

        bed.parking.answer(0, 200);
        assertThat(closed).isNotDone();
        bed.later.runAll();
        bed.parking.answer(1, 200);

        assertThat(runs.status()).isEqualTo(200);
        assertThat(waits.status()).isEqualTo(200);
        assertThat(closed).isDone();
        assertThat(bed.gateway.activator("default", "r1")).isNull();
    }

    @Test
    void closingAtZeroRejectsHeldRequests() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        TestExchange held = bed.predict();
        assertThat(activator.close().toCompletableFuture()).isDone();
        assertThat(held.status()).isEqualTo(503);
    }

    @Test
    void concurrencyIsMeasuredOverTimeAndHeldRequestsCount() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        activator.sample(bed.clock.nanos());
        bed.predict();
        bed.predict();
        bed.clock.forward(500);
        activator.capacity(1);
        bed.later.runAll();
        bed.parking.answer(0, 200);
        bed.clock.forward(500);
        RevisionActivator.Load load = activator.sample(bed.clock.nanos());
        assertThat(load.concurrency()).isBetween(1.49, 1.51);
        assertThat(load.requestsPerSecond()).isBetween(1.99, 2.01);
    }

    @Test
    void trafficCountsErrorsAndTheSlowestWithoutTheWaitingTime() {
        RevisionActivator activator = bed.open("r1", 0, 0);
        bed.predict();
        bed.clock.forward(9000);
        activator.capacity(1);
        bed.later.runAll();
        bed.clock.forward(20);
        bed.parking.answer(0, 200);
        bed.predict();
        bed.parking.answer(1, 500);
        bed.predict();
        bed.parking.answer(2, 400);
        Traffic traffic = activator.traffic(bed.clock.nanos());
        assertThat(traffic.requests()).isEqualTo(3);
        assertThat(traffic.errors()).isEqualTo(1);
        assertThat(traffic.p99Millis()).isBetween(20.0, 23.0);
        bed.clock.forward(65_000);
        assertThat(activator.traffic(bed.clock.nanos())).isEqualTo(Traffic.NONE);
    }

    @Test
    void aStreamIsUnderWayUntilItEnds() {
        RevisionActivator activator = bed.open("r1", 0, 1);
        TestExchange x = bed.predict();
        io.nereid.transport.api.ResponseStream stream =
                bed.parking.requests.get(0).stream(io.nereid.transport.api.HttpReply.json(200, "["));
        stream.send(Fakes.content("1"));
        assertThat(activator.sample(bed.clock.nanos()).active()).isEqualTo(1);
        stream.end();
        assertThat(activator.sample(bed.clock.nanos()).active()).isZero();
        assertThat(x.streamed).hasToString("1");
    }
}
