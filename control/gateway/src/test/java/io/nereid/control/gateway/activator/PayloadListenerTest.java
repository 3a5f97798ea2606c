// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.control.gateway.Fakes;
import io.nereid.control.gateway.Fakes.TestCall;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.GatewayFixture;
import io.nereid.control.gateway.inprocess.BodyCopies;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class PayloadListenerTest {
    private final GatewayFixture fixture = new GatewayFixture();
    private final List<String> recorded = new ArrayList<>();

    PayloadListenerTest() {
        fixture.route("r1");
    }

    private PayloadListener.@Nullable Recorder listen(PayloadListener.Head head) {
        recorded.add(head.transport() + " " + head.path());
        return new PayloadListener.Recorder() {
            @Override
            public void request(String contentType, MemoryRegion body) {
                recorded.add("request " + Fakes.text(body));
                body.release();
            }

            @Override
            public void response(String contentType, MemoryRegion body) {
                recorded.add("response " + contentType + " " + Fakes.text(body));
                body.release();
            }

            @Override
            public void end(int status, int code) {
                recorded.add("end " + status + " " + code);
            }
        };
    }

    @Test
    void requestsAndResponsesAreReportedIncludingFailures() {
        fixture.open("r1", 0, 1).listener(this::listen);
        fixture.predict();
        fixture.holdingCodec.answer(0, 500);
        assertThat(recorded)
                .containsExactly(
                        "http /v1/models/iris:predict",
                        "request 0123456789",
                        "response application/json {\"n\":0}",
                        "end 500 0");
    }

    @Test
    void rejectionsAreReported() {
        RevisionActivator activator = fixture.open("r1", 0, 1);
        activator.listener(this::listen);
        activator.reject("broken");
        fixture.predict();
        assertThat(recorded)
                .contains("request 0123456789", "response application/json {\"error\":\"broken\"}", "end 503 0");
    }

    @Test
    void cancellationsAreReportedOnce() {
        fixture.open("r1", 0, 1).listener(this::listen);
        TestExchange x = fixture.predict();
        x.leave();
        fixture.holdingCodec.answer(0, 200);
        assertThat(recorded).containsExactly("http /v1/models/iris:predict", "request 0123456789", "end 0 0");
    }

    @Test
    void withoutAListenerNothingIsKept() {
        fixture.open("r1", 0, 1).listener(head -> null);
        TestExchange x = fixture.predict();
        fixture.holdingCodec.answer(0, 200);
        // The exchange held the last reference.
        assertThatThrownBy(x.body()::release).hasMessageContaining("refCnt: 0");
    }

    @Test
    void streamsAreReportedPieceByPiece() {
        fixture.open("r1", 0, 1).listener(this::listen);
        fixture.predict();
        ResponseStream stream = fixture.holdingCodec.requests.get(0).stream(HttpReply.json(200, "["));
        stream.send(Fakes.content("1]"));
        stream.end();
        assertThat(recorded).endsWith("response application/json [", "response application/json 1]", "end 200 0");
    }

    @Test
    void messagesOfCallsAreReportedInBothDirections() {
        fixture.open("r1", 0, 1).listener(this::listen);
        TestCall call = new TestCall("/s/Infer");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("hello"));
        listener.onHalfClose();
        fixture.holdingCodec.calls.get(0).sendAndClose(Fakes.content("world"));
        assertThat(call.sent).containsExactly("world");
        assertThat(recorded)
                .containsExactly("grpc /s/Infer", "request hello", "response application/grpc world", "end 0 0");
        assertThat(fixture.holdingCodec.events).containsExactly("message hello", "half-close");
    }

    @Test
    void copiesOfCallsWithOneMessageGoToTheMirror() {
        fixture.open("r1", 0, 1);
        RevisionActivator shadow = fixture.open("shadow", 0, 1);
        fixture.route(
                List.of(new io.nereid.control.core.Route.IngressRule("iris.example.com", "", null, null)),
                java.util.Map.of(
                        io.nereid.control.core.Workload.Component.PREDICTOR,
                        new io.nereid.control.core.Route.Backend(
                                List.of(GatewayFixture.target("r1", 100)),
                                List.of(GatewayFixture.target("shadow", 100)),
                                null)));
        TestCall call = new TestCall("/s/Infer");
        GrpcListener listener = fixture.find("iris.example.com", call.path).start(call);
        listener.onMessage(Fakes.region("hello"));
        listener.onHalfClose();
        fixture.executor.runAll();
        assertThat(fixture.holdingCodec.calls).hasSize(2);
        assertThat(fixture.holdingCodec.events)
                .containsExactly("message hello", "half-close", "message hello", "half-close");
        assertThat(fixture.holdingCodec.calls.get(1).metadata("kserve-mirrored"))
                .isEqualTo("true");
        fixture.holdingCodec.calls.get(1).fail(io.nereid.base.ServingException.invalidArgument("no"));
        assertThat(shadow.activeNow()).isZero();
        assertThat(call.code).isNull();
        fixture.holdingCodec.calls.get(0).sendAndClose(Fakes.content("world"));
        assertThat(call.sent).containsExactly("world");
    }

    @Test
    void tensorsAreCopiedWhereTheyStandInTheText() {
        Tensor tensor = Tensor.allocate("t", DataType.UINT8, Shape.of(2));
        tensor.region().setBytes(tensor.offset(), new byte[] {'X', 'Y'}, 0, 2);
        ResponseBody content = Fakes.content("abcd").splice(tensor, 1);
        MemoryRegion copy = BodyCopies.copy(content);
        assertThat(Fakes.text(copy)).isEqualTo("aXYbcd");
        copy.release();
        content.discard();
    }
}
