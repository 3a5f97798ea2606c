// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.Destination.Processes;
import io.nereid.control.gateway.Destination.Replica;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.Fakes.TestUpstream.SentCall;
import io.nereid.endpoint.GrpcCall;
import io.nereid.endpoint.Upstream.Header;
import io.nereid.tensor.MemoryRegion;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Calls of gRPC that begin inside this process, such as those of a graph's steps. */
class InnerCallTest {
    private final Bed bed = new Bed();
    private final long deadline = bed.clock.nanos() + 5_000_000_000L;

    InnerCallTest() {
        bed.route("r1");
    }

    private RevisionGate open(int replicas) {
        RevisionGate gate = bed.gateway.open(
                "default", "r1", Bed.settings(0, 10), new Processes(List.of(new Replica("127.0.0.1", 0, 9000))));
        gate.capacity(replicas);
        return gate;
    }

    private CompletableFuture<MemoryRegion> call(String service) {
        return bed.gateway
                .call(
                        "default",
                        service,
                        null,
                        "/s/Infer",
                        List.of(new Header("x-team", "red")),
                        deadline,
                        Fakes.region("question"))
                .toCompletableFuture();
    }

    private SentCall sent(int i) {
        return bed.upstream.calls.get(i);
    }

    private static void fails(ThrowingCallable get, Code code, String text) {
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
    void theAnswerOfAProcessIsGathered() throws Exception {
        RevisionGate gate = open(1);
        CompletableFuture<MemoryRegion> answer = call("iris");
        GrpcCall call = sent(0).call();
        assertThat(sent(0).address().port()).isEqualTo(9000);
        assertThat(sent(0).events()).containsExactly("message question", "half-close");
        assertThat(call.path()).isEqualTo("/s/Infer");
        assertThat(call.metadata("x-team")).isEqualTo("red");
        assertThat(call.deadlineNanos()).isEqualTo(deadline);
        assertThat(gate.activeNow()).isEqualTo(1);
        call.send(Fakes.content("answer"));
        assertThat(answer).isNotDone();
        call.close(Code.OK, null);
        assertThat(text(answer.get())).isEqualTo("answer");
        assertThat(gate.activeNow()).isZero();
    }

    @Test
    void aFailureHasTheCallsCodeAndText() {
        open(1);
        CompletableFuture<MemoryRegion> answer = call("iris");
        sent(0).call().close(Code.RESOURCE_EXHAUSTED, "too many");
        fails(answer::get, Code.RESOURCE_EXHAUSTED, "too many");
        CompletableFuture<MemoryRegion> empty = call("iris");
        sent(1).call().close(Code.OK, null);
        fails(empty::get, Code.INTERNAL, "ended without an answer");
        fails(() -> call("nobody").get(), Code.UNAVAILABLE, "nobody");
    }

    @Test
    void cancellingTheAnswerEndsTheCall() {
        RevisionGate gate = open(1);
        CompletableFuture<MemoryRegion> answer = call("iris");
        answer.cancel(true);
        assertThat(sent(0).events()).containsExactly("message question", "half-close", "cancel");
        assertThat(gate.activeNow()).isZero();
        sent(0).call().send(Fakes.content("late"));
        sent(0).call().close(Code.OK, null);
        assertThat(answer).isCancelled();
    }

    @Test
    void aCallWaitsForAReplicaAsOthersDo() throws Exception {
        RevisionGate gate = open(0);
        CompletableFuture<MemoryRegion> answer = call("iris");
        assertThat(bed.upstream.calls).isEmpty();
        gate.capacity(1);
        bed.later.runAll();
        sent(0).call().sendAndClose(Fakes.content("answer"));
        assertThat(text(answer.get())).isEqualTo("answer");
    }

    @Test
    void aRequestOfHttpLearnsWhatTheProcessSpeaks() {
        open(1);
        TestExchange x = bed.predict();
        assertThat(x.status()).isEqualTo(501);
        assertThat(x.replyHeader("nereid-speaks")).isEqualTo("grpc");
    }
}
