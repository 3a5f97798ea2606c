// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.Fakes.TestTranscoder;
import io.nereid.control.gateway.Fakes.TestUpstream.SentCall;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.UpstreamClient.Header;
import java.net.ConnectException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** REST requests to a process that speaks gRPC only, and the calls that they become. */
class InProcessCallTest {
    private final GatewayFixture fixture = new GatewayFixture();

    InProcessCallTest() {
        fixture.route("r1");
    }

    private RevisionActivator open(int replicas) {
        RevisionActivator activator = fixture.gateway.openActivator(
                "default",
                "r1",
                GatewayFixture.settings(0, 10),
                new Processes(List.of(new Replica("127.0.0.1", 0, 9000))));
        activator.capacity(replicas);
        return activator;
    }

    private TestTranscoder.PendingRequest pending() {
        return fixture.transcoder.exchanges.get(fixture.transcoder.exchanges.size() - 1);
    }

    private CompletableFuture<MemoryRegion> call() {
        fixture.predict();
        return call(pending());
    }

    private static CompletableFuture<MemoryRegion> call(TestTranscoder.PendingRequest pending) {
        return pending.grpc()
                .call("/s/Infer", List.of(new Header("x-team", "red")), Fakes.region("question"))
                .toCompletableFuture();
    }

    private SentCall sent(int i) {
        return fixture.upstream.calls.get(i);
    }

    private static void fails(ThrowingCallable get, ErrorCode code, String text) {
        assertThatThrownBy(get)
                .isInstanceOf(ExecutionException.class)
                .satisfies(e -> assertThat(e.getCause()).isInstanceOfSatisfying(ServingException.class, s -> {
                    assertThat(s.code()).isEqualTo(code);
                    assertThat(s.getMessage()).contains(text);
                }));
    }

    private static String text(MemoryRegion region) {
        String text = Fakes.text(region);
        region.release();
        return text;
    }

    @Test
    void theResponseOfAProcessIsAggregated() throws Exception {
        RevisionActivator activator = open(1);
        CompletableFuture<MemoryRegion> answer = call();
        GrpcCall call = sent(0).call();
        assertThat(sent(0).address().port()).isEqualTo(9000);
        assertThat(sent(0).events()).containsExactly("message question", "half-close");
        assertThat(call.path()).isEqualTo("/s/Infer");
        assertThat(call.metadata("x-team")).isEqualTo("red");
        assertThat(activator.activeNow()).isEqualTo(1);
        call.send(Fakes.content("answer"));
        assertThat(answer).isNotDone();
        call.close(ErrorCode.OK, null);
        assertThat(text(answer.get())).isEqualTo("answer");
        pending().exchange().reply(HttpReply.json(200, "{}"));
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void aFailureHasTheCallsCodeAndText() {
        open(1);
        CompletableFuture<MemoryRegion> answer = call();
        sent(0).call().close(ErrorCode.RESOURCE_EXHAUSTED, "too many");
        fails(answer::get, ErrorCode.RESOURCE_EXHAUSTED, "too many");
        CompletableFuture<MemoryRegion> empty = call();
        sent(1).call().close(ErrorCode.OK, null);
        fails(empty::get, ErrorCode.INTERNAL, "ended without an answer");
    }

    @Test
    void cancellingTheResponseEndsTheCall() {
        RevisionActivator activator = open(1);
        CompletableFuture<MemoryRegion> answer = call();
        answer.cancel(true);
        assertThat(sent(0).events()).containsExactly("message question", "half-close", "cancel");
        sent(0).call().send(Fakes.content("late"));
        sent(0).call().close(ErrorCode.OK, null);
        assertThat(answer).isCancelled();
        pending().exchange().fail(ServingException.of(ErrorCode.CANCELLED, "gone"));
        assertThat(activator.activeNow()).isZero();
    }

    @Test
    void aRequestWaitsForAReplicaAsOthersDo() {
        RevisionActivator activator = open(0);
        TestExchange x = fixture.predict();
        assertThat(fixture.transcoder.exchanges).isEmpty();
        activator.capacity(1);
        fixture.executor.runAll();
        pending().exchange().reply(HttpReply.json(200, "{}"));
        assertThat(x.status()).isEqualTo(200);
    }

    @Test
    void withoutAConnectionAnotherProcessIsCalled() throws Exception {
        RevisionActivator activator = fixture.gateway.openActivator(
                "default",
                "r1",
                GatewayFixture.settings(0, 10),
                new Processes(List.of(new Replica("127.0.0.1", 0, 9000), new Replica("127.0.0.1", 0, 9001))));
        activator.capacity(2);
        TestExchange x = fixture.predict();
        CompletableFuture<MemoryRegion> answer = call(pending());
        sent(0).call()
                .fail(ServingException.wrap(ErrorCode.UNAVAILABLE, "no connection", new ConnectException("refused")));
        assertThatThrownBy(answer::get).cause().isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e).hasCauseInstanceOf(ConnectException.class);
            pending().exchange().fail(e);
        });
        assertThat(fixture.transcoder.exchanges).hasSize(2);
        CompletableFuture<MemoryRegion> another = call(pending());
        assertThat(sent(1).address()).isNotEqualTo(sent(0).address());
        sent(1).call().sendAndClose(Fakes.content("answer"));
        assertThat(text(another.get())).isEqualTo("answer");
        pending().exchange().reply(HttpReply.json(200, "{}"));
        assertThat(x.status()).isEqualTo(200);
        assertThat(activator.activeNow()).isZero();
    }
}
