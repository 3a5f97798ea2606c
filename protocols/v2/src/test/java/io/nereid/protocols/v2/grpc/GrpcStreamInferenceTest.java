// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeCall;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelStreamInferResponse;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class GrpcStreamInferenceTest {
    private static final InferParameter TRUE =
            InferParameter.newBuilder().setBoolParam(true).build();
    private static final InferParameter FALSE =
            InferParameter.newBuilder().setBoolParam(false).build();

    private final FakeEngine engine = new FakeEngine();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), Runnable::run, V2Options.defaults("1", 64 << 20));
    private final FakeCall call = new FakeCall(codec, "/inference.GRPCInferenceService/ModelStreamInfer");
    private long buffersBefore;

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private static ModelInferRequest.Builder request(String id) {
        return ModelInferRequest.newBuilder()
                .setModelName("identity")
                .setId(id)
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype("UINT8")
                        .addShape(200))
                .addRawInputContents(ByteString.copyFrom(new byte[200]));
    }

    private ModelStreamInferResponse sent(int i) throws InvalidProtocolBufferException {
        return ModelStreamInferResponse.parseFrom(call.sent.get(i));
    }

    private static InferenceResponse response(String id, int outputs) {
        List<Tensor> tensors = new ArrayList<>();
        for (int i = 0; i < outputs; i++) {
            Tensor t = Tensor.allocate("x", DataType.INT8, Shape.of(1));
            t.region().setBytes(0, new byte[] {9}, 0, 1);
            tensors.add(t);
        }
        return new InferenceResponse(new ServableId("identity", 1), id, tensors, Map.of());
    }

    @Test
    void answersLeaveInTheOrderOfTheRequests() throws Exception {
        engine.holding = true;
        call.start()
                .message(request("a").build())
                .message(request("b").build())
                .message(request("c").build());
        call.halfClose();
        engine.answer(engine.held.get(2));
        engine.answer(engine.held.get(1));
        assertThat(call.sent).isEmpty();
        engine.answer(engine.held.get(0));
        assertThat(call.sent).hasSize(3);
        assertThat(sent(0).getInferResponse().getId()).isEqualTo("a");
        assertThat(sent(1).getInferResponse().getId()).isEqualTo("b");
        assertThat(sent(2).getInferResponse().getId()).isEqualTo("c");
        assertThat(sent(2).getInferResponse().getRawOutputContents(0).size()).isEqualTo(200);
        assertThat(sent(2).getInferResponse().getParametersMap()).isEqualTo(Map.of("triton_final_response", TRUE));
        assertThat(call.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void theFailureOfARequestIsAMessageAndTheStreamGoesOn() throws Exception {
        call.start()
                .message(request("a").setModelName("nobody").build())
                .message(Wire.hex("0a"))
                .message(request("c").build());
        assertThat(sent(0).getErrorMessage()).isEqualTo("Request for unknown model: 'nobody' is not found");
        assertThat(sent(0).getInferResponse().getId()).isEqualTo("a");
        assertThat(sent(1).getErrorMessage()).startsWith("malformed protobuf message");
        assertThat(sent(2).getErrorMessage()).isEmpty();
        assertThat(call.code).isNull();
        call.halfClose();
        assertThat(call.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void aClientMayAskForTheTrueStatus() {
        call.metadata.put("triton_grpc_error", "true");
        call.start().message(request("a").setModelName("nobody").build());
        assertThat(call.code).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void manyAnswersToOneRequestAreSentAsTheyComeWhileOthersWait() throws Exception {
        engine.holding = true;
        call.start().message(request("a").build()).message(request("b").build());
        FakeEngine.Held a = engine.held.get(0);
        FakeEngine.Held b = engine.held.get(1);
        a.sink.next(response("a", 1), false);
        b.sink.next(response("b", 1), false);
        assertThat(call.sent).hasSize(1);
        assertThat(sent(0).getInferResponse().getParametersMap()).isEqualTo(Map.of("triton_final_response", FALSE));
        a.sink.next(response("a", 0), true);
        assertThat(call.sent)
                .as("the empty end of a is not sent, b's first answer is")
                .hasSize(2);
        assertThat(sent(1).getInferResponse().getId()).isEqualTo("b");
        b.sink.next(response("b", 1), true);
        assertThat(sent(2).getInferResponse().getParametersMap()).isEqualTo(Map.of("triton_final_response", TRUE));
        a.request.release();
        b.request.release();
    }

    @Test
    void anEmptyFinalResponseIsSentWhenAskedFor() throws Exception {
        engine.holding = true;
        call.start()
                .message(request("a")
                        .putParameters("triton_enable_empty_final_response", TRUE)
                        .build());
        FakeEngine.Held a = engine.held.get(0);
        a.sink.next(response("a", 1), false);
        a.sink.next(response("a", 0), true);
        assertThat(call.sent).hasSize(2);
        assertThat(sent(1).getInferResponse().getOutputsCount()).isZero();
        assertThat(sent(1).getInferResponse().getParametersMap()).isEqualTo(Map.of("triton_final_response", TRUE));
        a.request.release();
    }

    @Test
    void responsesOfDecoupledModelsAreSentAtOnceAndDelayNoOthers() throws Exception {
        engine.holding = true;
        engine.config = io.nereid.spi.config.ModelConfig.builder("identity")
                .decoupled(true)
                .build();
        call.start().message(request("a").build());
        engine.config = null;
        call.message(request("b").build());
        call.halfClose();
        FakeEngine.Held a = engine.held.get(0);
        engine.answer(engine.held.get(1));
        assertThat(sent(0).getInferResponse().getId()).isEqualTo("b");
        a.sink.next(response("a", 1), false);
        assertThat(sent(1).getInferResponse().getId()).isEqualTo("a");
        assertThat(call.code).as("a is not done").isNull();
        a.sink.next(response("a", 0), true);
        assertThat(call.sent).hasSize(2);
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        a.request.release();
    }

    @Test
    void noResponseAtAllIsNoMessage() {
        engine.holding = true;
        call.start().message(request("a").build());
        call.halfClose();
        FakeEngine.Held a = engine.held.get(0);
        a.sink.next(response("a", 0), true);
        assertThat(call.sent).isEmpty();
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        a.request.release();
    }

    @Test
    void cancellingTheStreamCancelsEveryRequest() {
        engine.holding = true;
        call.start().message(request("a").build()).message(request("b").build());
        engine.answer(engine.held.get(1));
        call.cancel();
        assertThat(engine.held.get(0).cancelled).isTrue();
        engine.answer(engine.held.get(0));
        assertThat(call.sent).isEmpty();
    }

    @Test
    void aClientThatDoesNotReadIsNotReadFrom() {
        call.start();
        call.ready = false;
        call.message(request("a").build());
        assertThat(call.reading).isFalse();
        call.becomeReady();
        assertThat(call.reading).isTrue();
    }
}
