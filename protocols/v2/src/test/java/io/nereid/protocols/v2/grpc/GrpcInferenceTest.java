// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeCall;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferRequestedOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class GrpcInferenceTest {
    private static final String PATH = "/inference.GRPCInferenceService/ModelInfer";

    private final FakeEngine engine = new FakeEngine();
    private final ArrayDeque<Runnable> pool = new ArrayDeque<>();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), pool::add, V2Options.defaults("1", 64 << 20));
    private long buffersBefore;

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private FakeCall call(ModelInferRequest request) {
        return new FakeCall(codec, PATH).start().message(request).halfClose();
    }

    private static InferInputTensor.Builder input(String name, String type, long... shape) {
        InferInputTensor.Builder b = InferInputTensor.newBuilder().setName(name).setDatatype(type);
        for (long d : shape) {
            b.addShape(d);
        }
        return b;
    }

    private static ModelInferRequest.Builder request(InferInputTensor.Builder... inputs) {
        ModelInferRequest.Builder b = ModelInferRequest.newBuilder().setModelName("identity");
        for (InferInputTensor.Builder input : inputs) {
            b.addInputs(input);
        }
        return b;
    }

    private static InferParameter number(long n) {
        return InferParameter.newBuilder().setInt64Param(n).build();
    }

    private static ModelInferResponse answer(FakeCall call) throws InvalidProtocolBufferException {
        assertThat(call.text).isEmpty();
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(call.sent).hasSize(1);
        return ModelInferResponse.parseFrom(call.sent.get(0));
    }

    private void refused(ModelInferRequest.Builder request, String text) {
        FakeCall call = call(request.build());
        assertThat(call.text).contains(text);
        assertThat(call.code).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(call(request(input("x", "INT8", 0)).build()).code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void rawInputsAreViewsAndAnswersAreRaw() throws Exception {
        engine.responseParameters = Map.of("p", 1.5);
        engine.holding = true;
        FakeCall call = call(request(input("a", "INT16", 2), input("b", "BYTES", 1))
                .setId("7")
                .addRawInputContents(ByteString.copyFrom(Wire.hex("0100ffff")))
                .addRawInputContents(ByteString.copyFrom(Wire.hex("01000000ff")))
                .build());
        List<Tensor> inputs = engine.held.get(0).request.inputs();
        assertThat(inputs.get(0).region()).isSameAs(inputs.get(1).region());
        engine.answer(engine.held.get(0));
        ModelInferResponse response = answer(call);
        assertThat(response.getModelName()).isEqualTo("identity");
        assertThat(response.getModelVersion()).isEqualTo("1");
        assertThat(response.getId()).isEqualTo("7");
        assertThat(response.getParametersMap())
                .isEqualTo(Map.of(
                        "p", InferParameter.newBuilder().setDoubleParam(1.5).build()));
        assertThat(response.getOutputs(0).getShapeList()).containsExactly(2L);
        assertThat(response.getOutputs(1).getDatatype()).isEqualTo("BYTES");
        assertThat(response.getRawOutputContentsList())
                .containsExactly(
                        ByteString.copyFrom(Wire.hex("0100ffff")), ByteString.copyFrom(Wire.hex("01000000ff")));
    }

    @Test
    void typedInputsAreAnsweredTyped() throws Exception {
        InferTensorContents contents = InferTensorContents.newBuilder()
                .addIntContents(-128)
                .addIntContents(127)
                .build();
        ModelInferResponse response =
                answer(call(request(input("a", "INT8", 2).setContents(contents)).build()));
        assertThat(response.getRawOutputContentsList()).isEmpty();
        assertThat(response.getOutputs(0).getContents()).isEqualTo(contents);
    }

    @Test
    void aHalfFloatOutputForcesRawAnswers() throws Exception {
        engine.add("half", 2, request -> {
            Tensor half = Tensor.allocate("h", DataType.FP16, Shape.of(1));
            half.region().setBytes(0, new byte[] {1, 2}, 0, 2);
            return List.of(half);
        });
        ModelInferResponse response = answer(call(request(input("x", "FP32", 1)
                        .setContents(InferTensorContents.newBuilder().addFp32Contents(1)))
                .setModelName("half")
                .build()));
        assertThat(response.getRawOutputContentsList()).containsExactly(ByteString.copyFrom(new byte[] {1, 2}));
        assertThat(response.getOutputs(0).hasContents()).isFalse();
    }

    @Test
    void parametersOutputsAndDeadlineReachTheEngine() {
        FakeCall call = new FakeCall(codec, PATH);
        call.deadline = 1_000_000;
        call.start()
                .message(request(input("x", "INT8", 1))
                        .addRawInputContents(ByteString.copyFrom(new byte[1]))
                        .setModelVersion("1")
                        .putParameters("timeout", number(7))
                        .putParameters("i", number(7))
                        .putParameters(
                                "u",
                                InferParameter.newBuilder().setUint64Param(8).build())
                        .putParameters(
                                "s",
                                InferParameter.newBuilder().setStringParam("é").build())
                        .putParameters(
                                "b",
                                InferParameter.newBuilder().setBoolParam(false).build())
                        .addOutputs(InferRequestedOutputTensor.newBuilder()
                                .setName("x")
                                .putParameters("classification", number(3)))
                        .build());
        assertThat(engine.last.parameters()).isEqualTo(Map.of("i", 7L, "u", 8L, "s", "é", "b", false));
        assertThat(engine.last.deadlineNanos()).isEqualTo(1_000_000);
        assertThat(engine.last.options().timeoutNanos()).isEqualTo(7_000);
        assertThat(engine.last.outputs()).containsExactly(new RequestedOutput("x", 3));
        assertThat(engine.last.model().version()).isEqualTo(1);
    }

    @Test
    void rawAndTypedDataDoNotMix() {
        InferTensorContents contents =
                InferTensorContents.newBuilder().addIntContents(1).build();
        refused(
                request(input("x", "INT8", 1).setContents(contents))
                        .addRawInputContents(ByteString.copyFrom(new byte[1])),
                "contents field must not be specified when using raw_input_contents for 'x' for model 'identity'");
        refused(
                request(input("x", "INT8", 1)),
                "unable to find data for input tensor 'x' for model 'identity' in request.");
        refused(
                request(input("x", "INT8", 1), input("y", "INT8", 1))
                        .addRawInputContents(ByteString.copyFrom(new byte[1])),
                "unable to find data for input tensor 'y' for model 'identity' in request.");
        refused(
                request().addRawInputContents(ByteString.EMPTY),
                "expected 0 entries of raw_input_contents, one for each input, but got 1 for model 'identity'");
    }

    @Test
    void typedDataMustFitItsTypeAndShape() {
        Consumer<InferTensorContents.Builder> nothing = b -> {};
        typed("FP16", b -> b.addFp32Contents(1), "of type 'FP32', expected datatype 'FP16'");
        typed("INT8", b -> b.addUintContents(1), "of type 'UINT32', expected datatype 'INT8'");
        typed("FP64", b -> b.addFp32Contents(1), "of type 'FP32', expected datatype 'FP64'");
        typed("INT8", b -> b.addIntContents(128), "value 128 of input 'x'");
        typed("INT8", b -> b.addIntContents(-129), "does not fit INT8 (expected: -128 to 127)");
        typed("UINT8", b -> b.addUintContents(-1), "value 4294967295 of input 'x'");
        typed("UINT16", b -> b.addUintContents(65536), "does not fit UINT16");
        typed("INT64", b -> b.addInt64Contents(1).addInt64Contents(2), "Expected 8, got 16");
        typed(
                "BYTES",
                b -> b.addBytesContents(ByteString.EMPTY).addBytesContents(ByteString.EMPTY),
                "unexpected number of string elements 2 for inference input 'x' for model 'identity', expecting 1");
        typed("BOOL", nothing, "unable to find data for input tensor 'x'");
    }

    private void typed(String type, Consumer<InferTensorContents.Builder> fill, String text) {
        InferTensorContents.Builder contents = InferTensorContents.newBuilder();
        fill.accept(contents);
        refused(request(input("x", type, 1).setContents(contents)), text);
    }

    @Test
    void badRequestsAreRejected() {
        ByteString one = ByteString.copyFrom(new byte[1]);
        refused(request(input("x", "INT8", -1)).addRawInputContents(one), "dimension -1");
        refused(request(input("x", "INT8", Long.MAX_VALUE, 2)).addRawInputContents(one), "more elements than fit");
        refused(request(input("x", "INT9", 1)).addRawInputContents(one), "unknown datatype 'INT9'");
        refused(
                request(input("x", "INT8", 2)).addRawInputContents(one),
                "input byte size mismatch for input 'x' for model 'identity'. Expected 2, got 1");
        refused(
                request(input("x", "INT8", 1), input("x", "INT8", 1))
                        .addRawInputContents(one)
                        .addRawInputContents(one),
                "input 'x' already exists in request");
        refused(request().setModelVersion("-1"), "failed to get model version from specified version string '-1'");
        refused(
                request()
                        .addOutputs(InferRequestedOutputTensor.newBuilder()
                                .setName("y")
                                .putParameters(
                                        "classification",
                                        InferParameter.newBuilder()
                                                .setStringParam("1")
                                                .build())),
                "invalid value type for 'classification' parameter, expected int64_param.");
        refused(
                request()
                        .putParameters(
                                "timeout",
                                InferParameter.newBuilder().setBoolParam(true).build()),
                "invalid value type for 'timeout' parameter, expected int64_param.");
        refused(request().putParameters("priority", number(-1)), "invalid value for 'priority', expected value >= 0.");
        refused(
                request()
                        .putParameters(
                                "sequence_id",
                                InferParameter.newBuilder().setBoolParam(true).build()),
                "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
        refused(
                request()
                        .putParameters(
                                "u",
                                InferParameter.newBuilder().setUint64Param(-1).build()),
                "value 18446744073709551615 of a uint64_param");
        assertThat(call(request().setModelName("nobody").build()).code).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void malformedMessagesAreRejected() {
        String[] messages = {
            "08",
            "0a05",
            "0affffffffffffffffff7f",
            "00",
            "0f",
            "0b",
            "2a0208",
            "0a01ff",
            "ffffffffffff" + "ffffffffff01"
        };
        for (String hex : messages) {
            FakeCall call = new FakeCall(codec, PATH).start().message(Wire.hex(hex));
            assertThat(call.code).as(hex).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        }
        assertThat(new FakeCall(codec, PATH).start().halfClose().text).isEqualTo("the call ended without a message");
    }

    @Test
    void cancellationReachesTheEngine() {
        engine.holding = true;
        FakeCall call = call(request(input("x", "INT8", 0)).build());
        call.cancel();
        FakeEngine.Held held = engine.held.get(0);
        assertThat(held.cancelled).isTrue();
        engine.answer(held);
        assertThat(call.sent).isEmpty();
    }

    @Test
    void largeTypedContentsGoThroughTheCodecPool() throws Exception {
        InferTensorContents.Builder contents = InferTensorContents.newBuilder();
        for (int i = 0; i < 70_000; i++) {
            contents.addFp32Contents(i);
        }
        FakeCall call =
                call(request(input("x", "FP32", 70_000).setContents(contents)).build());
        assertThat(call.code).isNull();
        engine.holding = true;
        pool.remove().run();
        engine.answer(engine.held.get(0));
        pool.remove().run();
        assertThat(answer(call).getOutputs(0).getContents()).isEqualTo(contents.build());
    }

    @Test
    void aModelWithManyAnswersNeedsAStream() {
        engine.holding = true;
        FakeCall call = call(request(input("x", "INT8", 0)).build());
        FakeEngine.Held held = engine.held.get(0);
        Tensor t = Tensor.allocate("x", DataType.INT8, Shape.of(1));
        held.sink.next(
                new InferenceResponse(new ServableId("identity", 1), "", new ArrayList<>(List.of(t)), Map.of()), false);
        held.sink.fail(ServingException.of(ErrorCode.CANCELLED, "stopped"));
        assertThat(call.code).isEqualTo(ErrorCode.UNIMPLEMENTED);
        assertThat(call.text).contains("ModelInfer RPC doesn't support models with decoupled transaction policy");
        assertThat(held.cancelled).isTrue();
    }
}
