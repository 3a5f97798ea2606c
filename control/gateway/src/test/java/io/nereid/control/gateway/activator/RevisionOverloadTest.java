// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.GatewayFixture;
import io.nereid.scheduling.admission.AdmissionControl;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The queue of a revision that serves one request at a time, ten in a second, and the admission under overload. */
class RevisionOverloadTest {
    private final GatewayFixture fixture = new GatewayFixture();
    private final List<Sent> sent = new ArrayList<>();
    private RevisionActivator activator;
    private int answered;

    private record Sent(TestExchange exchange, long at) {}

    @BeforeEach
    void open() {
        fixture.gateway.admission(AdmissionControl.overload(Duration.ofSeconds(1)));
        activator = fixture.gateway.openActivator(
                "default", "r1", GatewayFixture.settings(1, 10_000), GatewayFixture.model("r1"));
        activator.direct(false);
        activator.capacity(1);
        fixture.route("r1");
    }

    private void send(int requests) {
        for (int i = 0; i < requests; i++) {
            sent.add(new Sent(fixture.predict(), fixture.clock.nanos()));
        }
    }

    /** A tenth of a second, in which one request is answered. */
    private void tick() {
        fixture.clock.forward(100);
        fixture.gateway.sweep(fixture.clock.nanos());
        if (fixture.holdingCodec.requests.size() > answered) {
            fixture.holdingCodec.answer(answered++, 200);
            fixture.executor.runAll();
        }
    }

    private long count(int status) {
        return sent.stream().filter(s -> s.exchange.status() == status).count();
    }

    @Test
    void underOverloadTheExcessIsRefusedAtOnceWithAComputedRetryAfter() {
        for (int i = 0; i < 20; i++) {
            send(3);
            tick();
        }
        int before = sent.size();
        for (int i = 0; i < 100; i++) {
            send(3);
            tick();
        }
        List<Sent> late = sent.subList(before, sent.size());
        assertThat(late).filteredOn(s -> s.exchange.status() == 503).hasSizeBetween(180, 210);
        TestExchange refused = late.stream()
                .map(Sent::exchange)
                .filter(x -> x.status() == 503)
                .findFirst()
                .orElseThrow();
        assertThat(refused.replyHeader("retry-after")).isIn("2", "3");
        assertThat(refused.text()).contains("revision 'r1' is overloaded").contains("try again in");
        assertThat(activator.waitingNow()).isBetween(5, 9);
        assertThat(answered).as("one in each tick").isGreaterThanOrEqualTo(119);
        assertThat(activator.rejected.sum()).isEqualTo(count(503));
        // Less is offered than served: nothing is refused any more.
        for (int i = 0; i < 40; i++) {
            tick();
        }
        long refusedSoFar = count(503);
        for (int i = 0; i < 40; i++) {
            send(i % 2);
            tick();
        }
        assertThat(count(503)).isEqualTo(refusedSoFar);
    }

    @Test
    void aFixedNumberOfClientsIsNotRefused() {
        send(60);
        for (int i = 0; i < 300; i++) {
            tick();
            send(1);
        }
        assertThat(count(503)).isZero();
        assertThat(answered).isEqualTo(300);
    }

    @Test
    void requestsThatAreHeldWhileThereIsNoReplicaAreNotRefused() {
        for (int i = 0; i < 40; i++) {
            send(3);
            tick();
        }
        assertThat(count(503)).isPositive();
        activator.capacity(0);
        long before = count(503);
        send(20);
        assertThat(count(503)).isEqualTo(before);
    }
}
