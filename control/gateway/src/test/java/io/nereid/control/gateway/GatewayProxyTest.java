// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.Fakes.TestCall;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.Fakes.TestTranscoder;
import io.nereid.control.gateway.Fakes.TestUpstream.Sent;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.UpstreamClient.Header;
import java.net.ConnectException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GatewayProxyTest {
    private final GatewayFixture fixture = new GatewayFixture();

    GatewayProxyTest() {
        fixture.route("r1");
    }

    private RevisionActivator open(int concurrency, int... ports) {
        RevisionActivator activator = fixture.gateway.openActivator(
                "default", "r1", GatewayFixture.settings(concurrency, 10), processes(ports));
        activator.capacity(ports.length);
        return activator;
    }

    private static Processes processes(int... ports) {
        List<Replica> replicas = new ArrayList<>();
        for (int port : ports) {
            replicas.add(new Replica("127.0.0.1", port, port + 1000));
        }
        return new Processes(replicas);
    }

    private static ServingException refusedConnection() {
        return ServingException.wrap(ErrorCode.UNAVAILABLE, "no connection", new ConnectException("refused"));
    }

    private Sent sent(int i) {
        return fixture.upstream.sent.get(i);
    }

    @Test
    void requestsAreSentOnWithPathQueryTimeoutAndTheServicesName() {
        RevisionActivator activator = open(0, 9001);
        TestExchange x = TestExchange.post("/v1/models/iris:predict", "{}");
        x.query = "a=b%20c";
        fixture.find("iris.example.com", x.path()).handle(x);
        assertThat(sent(0).path()).isEqualTo("/v1/models/iris:predict?a=b%20c");
        assertThat(sent(0).address().port()).isEqualTo(9001);
        assertThat(sent(0).options().timeout()).isEqualTo(Duration.ofSeconds(30));
        assertThat(sent(0).options().headers())
                .containsExactly(
                        new Header("KServe-Isvc-Name", "iris"), new Header("KServe-Isvc-Namespace", "default"));
        sent(0).exchange().reply(HttpReply.json(418, "teapot"));
        assertThat(x.status()).isEqualTo(418);
        assertThat(x.text()).isEqualTo("teapot");
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void withoutAConnectionAnotherProcessIsTried() {
        open(0, 9001, 9002);
        TestExchange x = fixture.predict();
        sent(0).exchange().fail(refusedConnection());
        assertThat(fixture.upstream.sent).hasSize(2);
        assertThat(sent(1).address()).isNotEqualTo(sent(0).address());
        assertThat(x.status()).isZero();
        fixture.clock.forward(6000);
        sent(1).exchange().fail(refusedConnection());
        assertThat(x.status()).isEqualTo(503);
        assertThat(fixture.upstream.sent).hasSize(2);
        assertThat(fixture.gateway.activator("default", "r1").replicas().take(1, List.of(), n -> 0).inFlight)
                .hasValue(1);
    }

    @Test
    void theOnlyProcessIsTriedAgainAfterAPause() throws Exception {
        RevisionActivator activator = open(0, 9001);
        TestExchange x = fixture.predict();
        sent(0).exchange().fail(refusedConnection());
        assertThat(x.status()).isZero();
        fixture.executor.runNext(Duration.ofSeconds(30));
        assertThat(fixture.upstream.sent).hasSize(2);
        sent(1).exchange().reply(HttpReply.json(200, "{}"));
        assertThat(x.status()).isEqualTo(200);
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void aProcessWithoutAConnectionIsPassedOverForFiveSeconds() {
        open(0, 9001, 9002);
        fixture.predict();
        int lost = sent(0).address().port();
        sent(0).exchange().fail(refusedConnection());
        for (int i = 1; i <= 10; i++) {
            assertThat(sent(i).address().port()).isNotEqualTo(lost);
            fixture.predict();
        }
        sent(1).exchange().reply(HttpReply.json(200, "{}"));
        fixture.clock.forward(5001);
        fixture.predict();
        assertThat(sent(12).address().port()).isEqualTo(lost);
    }

    @Test
    void aRequestWhoseProcessHasGoneGoesToTheOneThatIsLeft() {
        RevisionActivator activator = open(0, 9001, 9002);
        TestExchange x = fixture.predict();
        int left = sent(0).address().port() == 9001 ? 9002 : 9001;
        activator.destination(processes(left));
        sent(0).exchange().fail(refusedConnection());
        assertThat(sent(1).address().port()).isEqualTo(left);
        sent(1).exchange().reply(HttpReply.json(200, "{}"));
        assertThat(x.status()).isEqualTo(200);
    }

    @Test
    void aRequestWhoseLastProcessHasGoneIsHeldUntilThereIsAnother() throws Exception {
        RevisionActivator activator = open(0, 9001);
        TestExchange x = fixture.predict();
        activator.destination(processes());
        activator.capacity(0);
        sent(0).exchange().fail(refusedConnection());
        fixture.executor.runNext(Duration.ofSeconds(30));
        assertThat(activator.waitingNow()).isEqualTo(1);
        admit(activator);
        assertThat(sent(1).address().port()).isEqualTo(9002);
        sent(1).exchange().reply(HttpReply.json(200, "{}"));
        assertThat(x.status()).isEqualTo(200);
    }

    @Test
    void aCallIsTriedAgainAfterAPauseWithItsMessage() throws Exception {
        RevisionActivator activator = open(0, 9001);
        TestCall call = new TestCall("/s/Infer");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("one"));
        fixture.upstream.calls.get(0).call().fail(refusedConnection());
        listener.onHalfClose();
        assertThat(fixture.upstream.calls).hasSize(1);
        fixture.executor.runNext(Duration.ofSeconds(30));
        assertThat(fixture.upstream.calls).hasSize(2);
        assertThat(fixture.upstream.calls.get(1).events()).containsExactly("message one", "half-close");
        fixture.upstream.calls.get(1).call().sendAndClose(Fakes.content("answer"));
        assertThat(call.sent).containsExactly("answer");
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void aRequestThatMayHaveBeenExecutedIsNotRetried() {
        open(0, 9001, 9002);
        TestExchange x = fixture.predict();
        sent(0).exchange().fail(ServingException.of(ErrorCode.UNAVAILABLE, "broken before the answer began"));
        assertThat(fixture.upstream.sent).hasSize(1);
        assertThat(x.status()).isEqualTo(503);
    }

    @Test
    void withALimitOfOneEachProcessGetsOneRequestAtATime() {
        open(1, 9001, 9002, 9003);
        for (int i = 0; i < 4; i++) {
            fixture.predict();
        }
        assertThat(fixture.upstream.sent).extracting(s -> s.address().port()).containsExactly(9001, 9002, 9003);
        sent(1).exchange().reply(HttpReply.json(200, "{}"));
        fixture.executor.runAll();
        assertThat(sent(3).address().port()).isEqualTo(9002);
    }

    @Test
    void withALimitAboveThreeReplicasAreUsedRoundRobin() {
        open(4, 9001, 9002, 9003);
        for (int i = 0; i < 6; i++) {
            fixture.predict();
        }
        assertThat(fixture.upstream.sent)
                .extracting(s -> s.address().port())
                .containsExactly(9001, 9002, 9003, 9001, 9002, 9003);
    }

    @Test
    void withoutALimitTheLessBusyOfTwoIsTaken() {
        open(0, 9001, 9002);
        Map<Integer, Integer> hits = new HashMap<>();
        for (int i = 0; i < 100; i++) {
            fixture.predict();
            hits.merge(sent(i).address().port(), 1, Integer::sum);
        }
        assertThat(hits).containsEntry(9001, 50).containsEntry(9002, 50);
    }

    @Test
    void requestsOfAProcessThatStaysAreStillCountedWhenOthersComeAndGo() {
        RevisionActivator activator = open(1, 9001, 9002);
        fixture.predict();
        activator.destination(processes(9001, 9003));
        fixture.predict();
        assertThat(sent(1).address().port()).isEqualTo(9003);
        activator.destination(processes());
        assertThat(fixture.predict().status()).isZero();
        assertThat(activator.waitingNow()).isEqualTo(1);
        assertThat(fixture.woken).hasSize(1);
        activator.destination(processes(9004));
        activator.capacity(4);
        sent(0).exchange().reply(HttpReply.json(200, "{}"));
        sent(1).exchange().reply(HttpReply.json(200, "{}"));
        fixture.executor.runAll();
        assertThat(sent(2).address().port()).isEqualTo(9004);
    }

    @Test
    void cancellationEndsTheRequestAtTheUpstream() {
        RevisionActivator activator = open(0, 9001);
        TestExchange x = fixture.predict();
        List<String> recorded = new ArrayList<>();
        sent(0).exchange().onCancel(() -> recorded.add("cancel"));
        x.leave();
        assertThat(recorded).containsExactly("cancel");
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void heldCallsAreDeliveredInOrderWhenAProcessIsReady() {
        RevisionActivator activator = open(0);
        TestCall call = new TestCall("/inference.GRPCInferenceService/ModelInfer");
        call.metadata.put("ce-id", "1");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("one"));
        listener.onHalfClose();
        assertThat(fixture.woken).hasSize(1);
        assertThat(fixture.budget.used()).isEqualTo(3);
        activator.destination(processes(9001));
        activator.capacity(1);
        fixture.executor.runAll();
        assertThat(fixture.upstream.calls).singleElement().satisfies(c -> {
            assertThat(c.address().port()).isEqualTo(10001);
            assertThat(c.events()).containsExactly("message one", "half-close");
            assertThat(c.call().metadata("ce-id")).isEqualTo("1");
        });
        assertThat(fixture.budget.used()).isZero();
        fixture.upstream.calls.get(0).call().sendAndClose(Fakes.content("answer"));
        assertThat(call.sent).containsExactly("answer");
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void aRequestThatWasAdmittedIsHeldAgainWhenTheLastReplicaGoesBeforeItIsSent() {
        for (int limit : new int[] {0, 1}) {
            fixture.upstream.sent.clear();
            fixture.upstream.calls.clear();
            fixture.woken.clear();
            RevisionActivator activator = open(limit);
            TestExchange x = fixture.predict();
            admitAndLose(activator);
            assertThat(fixture.upstream.sent).isEmpty();
            assertThat(x.status()).isZero();
            assertThat(fixture.woken).hasSize(2);
            admit(activator);
            assertThat(sent(0).address().port()).isEqualTo(9002);
            sent(0).exchange().reply(HttpReply.json(200, "{}"));
            assertThat(x.status()).isEqualTo(200);
            assertThat(activator.activeNow()).isZero();
            assertThat(fixture.budget.used()).isZero();

            TestCall call = new TestCall("/s/Infer");
            activator.destination(processes());
            GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
            listener.onMessage(Fakes.region("one"));
            admitAndLose(activator);
            listener.onHalfClose();
            assertThat(fixture.upstream.calls).isEmpty();
            admit(activator);
            assertThat(fixture.upstream.calls)
                    .singleElement()
                    .satisfies(c -> assertThat(c.events()).containsExactly("message one", "half-close"));
            fixture.upstream.calls.get(0).call().sendAndClose(Fakes.content("answer"));
            assertThat(call.sent).containsExactly("answer");
            assertThat(activator.activeNow()).isZero();
            assertThat(fixture.budget.used()).isZero();
        }
    }

    private void admit(RevisionActivator activator) {
        activator.destination(processes(9002));
        activator.capacity(1);
        fixture.executor.runAll();
    }

    /** Admits what is held, and takes the replica away before it runs. */
    private void admitAndLose(RevisionActivator activator) {
        activator.destination(processes(9001));
        activator.capacity(1);
        activator.destination(processes());
        activator.capacity(0);
        fixture.executor.runAll();
        assertThat(activator.waitingNow()).isEqualTo(1);
    }

    @Test
    void aCallWithoutAConnectionIsRetriedAtAnotherProcessWithItsMessage() {
        RevisionActivator activator = open(0, 9001, 9002);
        TestCall call = new TestCall("/s/Infer");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("one"));
        fixture.upstream.calls.get(0).call().fail(refusedConnection());
        listener.onHalfClose();
        assertThat(fixture.upstream.calls).hasSize(2);
        assertThat(fixture.upstream.calls.get(1).address())
                .isNotEqualTo(fixture.upstream.calls.get(0).address());
        assertThat(fixture.upstream.calls.get(1).events()).containsExactly("message one", "half-close");
        fixture.clock.forward(6000);
        fixture.upstream.calls.get(1).call().fail(refusedConnection());
        assertThat(call.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void aCallWithAResponseOrTwoMessagesIsNotRetried() {
        open(0, 9001, 9002);
        TestCall answered = new TestCall("/s/Infer");
        fixture.find("iris.example.com", answered.path).start(answered);
        fixture.upstream.calls.get(0).call().send(Fakes.content("part"));
        fixture.upstream.calls.get(0).call().fail(refusedConnection());
        assertThat(answered.code).isEqualTo(ErrorCode.UNAVAILABLE);

        TestCall two = new TestCall("/s/Infer");
        GrpcListener listener = fixture.find("iris.example.com", two.path).start(two);
        listener.onMessage(Fakes.region("one"));
        listener.onMessage(Fakes.region("two"));
        fixture.upstream.calls.get(1).call().fail(refusedConnection());
        assertThat(two.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(fixture.upstream.calls).hasSize(2);
    }

    @Test
    void aCallThatIsCancelledWhileHeldIsRemoved() {
        RevisionActivator activator = open(0);
        TestCall call = new TestCall("/s/Infer");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("one"));
        listener.onCancel();
        assertThat(fixture.budget.used()).isZero();
        assertThat(activator.activeNow()).isZero();
        activator.destination(processes(9001));
        activator.capacity(1);
        fixture.executor.runAll();
        assertThat(fixture.upstream.calls).isEmpty();
    }

    @Test
    void aHeldCallsDeadlineIsItsOwnWhenThatIsEarlier() {
        open(0);
        TestCall call = new TestCall("/s/Infer");
        call.deadline = fixture.clock.nanos() + 1_000_000_000L;
        fixture.find("iris.example.com", call.path).start(call);
        fixture.clock.forward(1000);
        fixture.gateway.sweep(fixture.clock.nanos());
        assertThat(call.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(call.message)
                .contains("no replica of revision r1 was ready in time")
                .contains("try again in");
    }

    @Test
    void messagesThatWouldTakeTooMuchMemoryEndTheCall() {
        open(0);
        TestCall call = new TestCall("/s/Infer");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("x".repeat(900)));
        listener.onMessage(Fakes.region("x".repeat(200)));
        assertThat(call.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(fixture.budget.used()).isZero();
    }

    private static Processes withoutGrpc(int... ports) {
        List<Replica> replicas = new ArrayList<>();
        for (int port : ports) {
            replicas.add(new Replica("127.0.0.1", port, 0));
        }
        return new Processes(replicas);
    }

    @Test
    void aCallToAProcessWithoutGrpcIsTranscodedToRest() {
        RevisionActivator activator = open(0, 9001);
        activator.destination(withoutGrpc(9001));
        TestCall call = new TestCall("/inference.GRPCInferenceService/ModelInfer");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("one"));
        TestTranscoder.Transcoded bridged = fixture.transcoder.calls.get(0);
        assertThat(bridged.events()).containsExactly("message one");
        bridged.rest().call("POST", "/v2/x?y", List.of(new Header("a", "b")), Fakes.region("{}"));
        assertThat(fixture.upstream.requests).singleElement().satisfies(a -> {
            assertThat(a.method()).isEqualTo("POST");
            assertThat(a.url()).isEqualTo("http://127.0.0.1:9001/v2/x?y");
            assertThat(a.headers()).containsExactly(new Header("a", "b"));
            assertThat(a.body()).isEqualTo("{}");
            assertThat(a.options().timeout()).isEqualTo(Duration.ofSeconds(30));
        });
        assertThat(activator.activeNow()).isEqualTo(1);
        bridged.call().sendAndClose(Fakes.content("answer"));
        assertThat(call.sent).containsExactly("answer");
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void aTranscodedCallWithoutAConnectionIsRetriedAtAnotherProcess() {
        RevisionActivator activator = open(0, 9001, 9002);
        activator.destination(withoutGrpc(9001, 9002));
        TestCall call = new TestCall("/inference.GRPCInferenceService/ModelInfer");
        fixture.find("iris.example.com", call.path).start(call).onMessage(Fakes.region("one"));
        fixture.transcoder.calls.get(0).call().fail(refusedConnection());
        assertThat(fixture.transcoder.calls).hasSize(2);
        assertThat(fixture.transcoder.calls.get(1).events()).containsExactly("message one");
        fixture.clock.forward(6000);
        fixture.transcoder.calls.get(1).call().fail(refusedConnection());
        assertThat(call.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(activator.activeNow()).isZero();
    }
}
