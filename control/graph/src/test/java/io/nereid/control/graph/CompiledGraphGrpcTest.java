// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferRequestedOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyResponse;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelLoadRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyResponse;
import io.nereid.protocols.v2.transcoding.GrpcToRestTranscoder;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Graphs that are called over gRPC: the transcoder to REST in front of them, and services with the V2 codec behind
 * them.
 */
class CompiledGraphGrpcTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ECHO =
            "{\"root\":{\"routerType\":\"Sequence\",\"steps\":[{\"serviceName\":\"echo\"}]}}";

    private final EchoService echo = new EchoService();
    private final List<String> calls = new ArrayList<>();
    private final List<List<UpstreamClient.Header>> headers = new ArrayList<>();
    private final List<Duration> timeouts = new ArrayList<>();
    private final CompletableFuture<UpstreamResponse> slow = new CompletableFuture<>();
    private long now = 1_000_000_000;
    private int dice;

    private final Clock clock = new Clock() {
        @Override
        public long nanos() {
            return now;
        }

        @Override
        public long millis() {
            return 0;
        }
    };

    private CompletionStage<UpstreamResponse> call(
            Step step, List<UpstreamClient.Header> passed, byte[] body, Duration timeout) {
        String service = String.valueOf(step.serviceName());
        calls.add(service + " " + new String(body, StandardCharsets.UTF_8));
        headers.add(passed);
        timeouts.add(timeout);
        return switch (service) {
            case "echo" -> echo.ask(body);
            case "missing" -> answer(404, "{\"error\":\"Model with name missing does not exist.\"}");
            case "busy" -> answer(503, "{\"detail\":\"busy\"}");
            case "v1" -> answer(200, "{\"predictions\":[1]}");
            case "text" -> answer(200, "plain");
            case "broken" ->
                answer(200, "{\"outputs\":[{\"name\":\"y\",\"shape\":[3],\"datatype\":\"INT32\",\"data\":[1,2]}]}");
            case "huge" ->
                answer(
                        200,
                        "{\"outputs\":[{\"name\":\"y\",\"shape\":[900000000],\"datatype\":\"FP64\",\"data\":[1]}]}");
            case "backwards" ->
                answer(
                        200,
                        "{\"outputs\":[{\"data\":[[1.5],[2.5]],\"parameters\":{\"a\":[1]},\"datatype\":\"FP32\","
                                + "\"shape\":[2,1],\"name\":\"y\"}],\"parameters\":{\"s\":\"t\",\"n\":3,\"d\":0.5,"
                                + "\"b\":true,\"o\":{\"k\":[1]},\"z\":null},\"model_version\":\"v2\"}");
            case "slow" -> slow;
            case "gone" ->
                CompletableFuture.failedStage(ServingException.of(ErrorCode.UNAVAILABLE, "no service at gone"));
            default -> throw new AssertionError(service);
        };
    }

    private static CompletionStage<UpstreamResponse> answer(int status, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return CompletableFuture.completedStage(
                new UpstreamResponse(status, List.of(), MemoryRegion.copyOf(bytes, 0, bytes.length)));
    }

    private GrpcHandler graph(String nodes, Duration timeout) throws Exception {
        ObjectNode spec = (ObjectNode) JSON.readTree("{\"nodes\":" + nodes + "}");
        GraphCodec.Settings settings = new GraphCodec.Settings(
                new InferenceServiceConfig.Router(List.of("X-Team|Authorization")).patterns(),
                Duration.ofSeconds(9),
                timeout,
                () -> dice);
        HttpRoute route = new GraphCodec("chain", spec, settings, this::call, clock)
                .httpRoutes()
                .get(0);
        return call -> new GrpcToRestTranscoder(Runnable::run)
                .start(
                        call,
                        (method, target, given, body) -> new Exchange(method, target, given, body).handledBy(route));
    }

    private UnaryCall begin(String nodes) throws Exception {
        return new UnaryCall(graph(nodes, Duration.ZERO), "ModelInfer");
    }

    private UnaryCall ask(String nodes, Message request) throws Exception {
        return begin(nodes).send(request.toByteArray());
    }

    private static ModelInferResponse answer(UnaryCall call) throws InvalidProtocolBufferException {
        assertThat(call.text).isEmpty();
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        return ModelInferResponse.parseFrom(Objects.requireNonNull(call.answer));
    }

    private static ModelInferRequest.Builder numbers() {
        return ModelInferRequest.newBuilder()
                .setModelName("chain")
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype("INT32")
                        .addShape(2)
                        .setContents(InferTensorContents.newBuilder()
                                .addIntContents(3)
                                .addIntContents(-4)));
    }

    private static String node(String type, String... steps) {
        return "{\"root\":{\"routerType\":\"" + type + "\",\"steps\":[" + String.join(",", steps) + "]}}";
    }

    private static String step(String service) {
        return "{\"serviceName\":\"" + service + "\"}";
    }

    private static byte[] sample(DataType type) {
        ByteBuffer b = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
        switch (type) {
            case BOOL -> b.put((byte) 1).put((byte) 0);
            case UINT8 -> b.put((byte) 255).put((byte) 7);
            case INT8 -> b.put((byte) -128).put((byte) 7);
            case UINT16 -> b.putShort((short) 65535).putShort((short) 1);
            case INT16 -> b.putShort((short) -32768).putShort((short) 1);
            case UINT32 -> b.putInt(-1).putInt(1);
            case INT32 -> b.putInt(Integer.MIN_VALUE).putInt(1);
            case UINT64 -> b.putLong(-1).putLong(1);
            case INT64 -> b.putLong(Long.MIN_VALUE).putLong(1);
            case FP16 -> b.putShort((short) 0x3555).putShort((short) 0x7BFF);
            case BF16 -> b.putShort((short) 0x3EAB).putShort((short) 0xC048);
            case FP32 -> b.putFloat(0.1f).putFloat(-3.4e38f);
            case FP64 -> b.putDouble(0.1).putDouble(-1e-300);
            case BYTES ->
                b.putInt(4)
                        .put("a\"\u00e9".getBytes(StandardCharsets.UTF_8))
                        .putInt(3)
                        .put(new byte[] {(byte) 0xFF, 0, 1});
        }
        byte[] bytes = new byte[b.position()];
        b.get(0, bytes);
        return bytes;
    }

    @ParameterizedTest
    @EnumSource
    void rawContentsOfEveryTypeRoundTrip(DataType type) throws Exception {
        byte[] bytes = sample(type);
        ModelInferRequest request = ModelInferRequest.newBuilder()
                .setModelName("chain")
                .setId("seven")
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype(type.name())
                        .addShape(1)
                        .addShape(2))
                .addRawInputContents(ByteString.copyFrom(bytes))
                .build();
        ModelInferResponse answer = answer(ask(ECHO, request));
        assertThat(answer.getModelName()).isEqualTo("echo");
        assertThat(answer.getModelVersion()).isEqualTo("7");
        assertThat(answer.getId()).isEqualTo("seven");
        assertThat(answer.getOutputs(0).getName()).isEqualTo("out-x");
        assertThat(answer.getOutputs(0).getDatatype()).isEqualTo(type.name());
        assertThat(answer.getOutputs(0).getShapeList()).containsExactly(1L, 2L);
        assertThat(answer.getRawOutputContents(0).toByteArray()).isEqualTo(bytes);
    }

    @Test
    void typedContentsReceiveTypedContents() throws Exception {
        InferTensorContents words = InferTensorContents.newBuilder()
                .addBytesContents(ByteString.copyFromUtf8("dog"))
                .addBytesContents(ByteString.EMPTY)
                .build();
        ModelInferResponse answer = answer(ask(
                ECHO,
                numbers()
                        .addInputs(InferInputTensor.newBuilder()
                                .setName("w")
                                .setDatatype("BYTES")
                                .addShape(2)
                                .setContents(words))
                        .build()));
        assertThat(answer.getOutputs(0).getContents().getIntContentsList()).containsExactly(3, -4);
        assertThat(answer.getOutputs(1).getContents()).isEqualTo(words);
        assertThat(answer.getRawOutputContentsCount()).isZero();
    }

    @Test
    void aCallBecomesTheEquivalentRestRequest() throws Exception {
        InferParameter.Builder p = InferParameter.newBuilder();
        ModelInferRequest request = numbers()
                .setId("1")
                .putParameters("flag", p.setBoolParam(true).build())
                .putParameters("count", p.setInt64Param(5).build())
                .putParameters("word", p.setStringParam("w").build())
                .putParameters("ratio", p.setDoubleParam(0.25).build())
                .putParameters("priority", p.setInt64Param(2).build())
                .putParameters("timeout", p.setInt64Param(1500).build())
                .putParameters("sequence_id", p.setInt64Param(9).build())
                .putParameters("sequence_start", p.setBoolParam(true).build())
                .addOutputs(InferRequestedOutputTensor.newBuilder()
                        .setName("out-x")
                        .putParameters("classification", p.setInt64Param(1).build()))
                .build();
        ask(node("Sequence", step("v1")), request);
        JsonNode sent = JSON.readTree(calls.get(0).substring("v1 ".length()));
        assertThat(sent).isEqualTo(JSON.readTree("""
            {"id": "1",
             "parameters": {"flag": true, "count": 5, "word": "w", "ratio": 0.25, "priority": 2, "timeout": 1500,
               "sequence_id": 9, "sequence_start": true},
             "inputs": [{"name": "x", "shape": [2], "datatype": "INT32", "data": [3, -4]}],
             "outputs": [{"name": "out-x", "parameters": {"classification": 1}}]}
            """));
    }

    @Test
    void parametersOfTheResponseAreKept() throws Exception {
        ModelInferResponse answer =
                answer(ask(node("Sequence", step("backwards")), numbers().build()));
        assertThat(answer.getModelName()).isEqualTo("chain");
        assertThat(answer.getModelVersion()).isEqualTo("v2");
        assertThat(answer.getOutputs(0).getContents().getFp32ContentsList()).containsExactly(1.5f, 2.5f);
        Map<String, InferParameter> got = answer.getParametersMap();
        assertThat(got.keySet()).containsExactlyInAnyOrder("s", "n", "d", "b", "o");
        assertThat(got.get("s").getStringParam()).isEqualTo("t");
        assertThat(got.get("n").getInt64Param()).isEqualTo(3);
        assertThat(got.get("d").getDoubleParam()).isEqualTo(0.5);
        assertThat(got.get("b").getBoolParam()).isTrue();
        assertThat(got.get("o").getStringParam()).isEqualTo("{\"k\":[1]}");
    }

    @Test
    void stepsReceiveTheRequestOrTheFormerResponse() throws Exception {
        String nodes = node(
                "Sequence",
                step("backwards"),
                "{\"serviceName\":\"echo\",\"condition\":\"outputs.#(name==\\\"y\\\")\"}",
                "{\"serviceName\":\"missing\",\"condition\":\"outputs.#(name==\\\"absent\\\")\"}");
        assertThat(answer(ask(nodes, numbers().build())).getOutputs(0).getName())
                .isEqualTo("out-x");
        assertThat(calls).hasSize(2);
        calls.clear();
        ask(
                node("Sequence", step("backwards"), "{\"serviceName\":\"v1\",\"data\":\"$response\"}"),
                numbers().build());
        assertThat(calls.get(1)).contains("\"outputs\"");
    }

    @Test
    void outputsBecomeInputsWhereTheStepRequestsIt() throws Exception {
        String mapped = "{\"serviceName\":\"echo\",\"data\":\"$response\",\"mapPredictionsToInstances\":true}";
        ModelInferResponse answer = answer(
                ask(node("Sequence", step("echo"), mapped), numbers().setId("4").build()));
        assertThat(answer.getId()).isEqualTo("4");
        assertThat(answer.getOutputs(0).getName()).isEqualTo("out-out-x");
        assertThat(answer.getOutputs(0).getContents().getIntContentsList()).containsExactly(3, -4);
    }

    @Test
    void switchesAndSplittersChoose() throws Exception {
        String chosen = node(
                "Switch",
                "{\"serviceName\":\"missing\",\"condition\":\"inputs.#(datatype==\\\"FP32\\\")\"}",
                "{\"serviceName\":\"echo\",\"condition\":\"parameters.kind\"}");
        InferParameter kind = InferParameter.newBuilder().setStringParam("b").build();
        assertThat(answer(ask(chosen, numbers().putParameters("kind", kind).build()))
                        .getOutputsCount())
                .isEqualTo(1);
        UnaryCall none = ask(chosen, numbers().build());
        assertThat(none.code).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(none.text).contains("None of the routes matched with the switch condition");
        String split = node(
                "Splitter", "{\"serviceName\":\"echo\",\"weight\":30}", "{\"serviceName\":\"busy\",\"weight\":70}");
        dice = 29;
        assertThat(ask(split, numbers().build()).code).isEqualTo(ErrorCode.OK);
        dice = 30;
        assertThat(ask(split, numbers().build()).code).isEqualTo(ErrorCode.UNAVAILABLE);
    }

    @Test
    void anEnsembleOfResponsesIsOneResponse() throws Exception {
        String nodes = """
            {"root": {"routerType": "Ensemble", "steps": [
               {"name": "a", "serviceName": "echo"}, {"name": "b", "nodeName": "inner"}]},
             "inner": {"routerType": "Ensemble", "steps": [{"name": "c", "serviceName": "backwards"}]}}
            """;
        ModelInferResponse answer = answer(ask(nodes, numbers().setId("5").build()));
        assertThat(answer.getModelName()).isEqualTo("chain");
        assertThat(answer.getId()).isEqualTo("5");
        assertThat(answer.getOutputsList())
                .extracting(ModelInferResponse.InferOutputTensor::getName)
                .containsExactly("a.out-x", "b.c.y");
        assertThat(answer.getParametersMap()).containsKey("b.c.s");
        UnaryCall half =
                ask(nodes.replace("\"backwards\"", "\"missing\""), numbers().build());
        assertThat(half.code).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(half.text).contains("does not exist");
    }

    @Test
    void aResponseThatIsNotV2IsReportedUnchanged() throws Exception {
        UnaryCall v1 = ask(node("Sequence", step("v1")), numbers().build());
        assertThat(v1.code).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(v1.text).contains("answered {\"predictions\":[1]}", "not a V2 inference response");
        assertThat(ask(node("Sequence", step("text")), numbers().build()).text)
                .contains("answered plain, which is not a V2 inference response");
        UnaryCall broken = ask(node("Sequence", step("broken")), numbers().build());
        assertThat(broken.code).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(broken.text).contains("output 'y'");
        assertThat(ask(node("Sequence", step("huge")), numbers().build()).text).contains("output 'y'");
    }

    @Test
    void statusesOfHttpBecomeCodes() throws Exception {
        UnaryCall missing = ask(node("Sequence", step("missing")), numbers().build());
        assertThat(missing.code).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(missing.text).isEqualTo("Model with name missing does not exist.");
        assertThat(ask(node("Sequence", step("busy")), numbers().build()).code).isEqualTo(ErrorCode.UNAVAILABLE);
        UnaryCall gone = ask(node("Sequence", step("gone")), numbers().build());
        assertThat(gone.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(gone.text).contains("no service at gone");
        UnaryCall hard = ask(
                node("Sequence", "{\"serviceName\":\"missing\",\"dependency\":\"Hard\"}", step("echo")),
                numbers().build());
        assertThat(hard.code).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(ask(
                                node("Sequence", step("missing"), step("echo")),
                                numbers().build())
                        .code)
                .isEqualTo(ErrorCode.OK);
    }

    @Test
    void metadataAreForwardedAsHeadersAndNotAsParameters() throws Exception {
        String trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        UnaryCall call = begin(ECHO)
                .with("content-type", "application/grpc")
                .with("traceparent", trace)
                .with("x-team", "red")
                .with("authorization", "Bearer t")
                .with("user-agent", "grpc-test")
                .with("grpc-accept-encoding", "gzip");
        call.send(numbers().build().toByteArray());
        assertThat(answer(call).getParametersMap()).isEmpty();
        assertThat(headers.get(0))
                .containsExactlyInAnyOrder(
                        new UpstreamClient.Header("traceparent", trace),
                        new UpstreamClient.Header("x-team", "red"),
                        new UpstreamClient.Header("authorization", "Bearer t"),
                        new UpstreamClient.Header("content-type", "application/json"));
    }

    @Test
    void aStepReceivesTheRemainingTimeout() throws Exception {
        ask(ECHO, numbers().build());
        assertThat(timeouts).endsWith(Duration.ofSeconds(9));
        new UnaryCall(graph(ECHO, Duration.ofSeconds(3)), "ModelInfer")
                .send(numbers().build().toByteArray());
        assertThat(timeouts).endsWith(Duration.ofSeconds(3));
    }

    @Test
    void noStepBeginsAfterTheDeadline() throws Exception {
        UnaryCall call =
                new UnaryCall(graph(node("Sequence", step("slow"), step("echo")), Duration.ofSeconds(1)), "ModelInfer");
        call.send(numbers().build().toByteArray());
        now += Duration.ofSeconds(1).toNanos();
        slow.completeExceptionally(ServingException.of(ErrorCode.DEADLINE_EXCEEDED, "slow"));
        assertThat(call.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(calls).hasSize(1);
    }

    @Test
    void cancellationEndsTheRunningStep() throws Exception {
        UnaryCall call =
                ask(node("Sequence", step("slow"), step("echo")), numbers().build());
        assertThat(call.code).isNull();
        call.cancel();
        assertThat(slow).isCancelled();
        assertThat(call.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(calls).hasSize(1);
    }

    @Test
    void aGraphReportsItsMetadata() throws Exception {
        GrpcHandler codec = graph(ECHO, Duration.ZERO);
        UnaryCall metadata = new UnaryCall(codec, "ModelMetadata")
                .send(ModelMetadataRequest.newBuilder().setName("chain").build().toByteArray());
        ModelMetadataResponse metadataResponse =
                ModelMetadataResponse.parseFrom(Objects.requireNonNull(metadata.answer));
        assertThat(metadataResponse.getName()).isEqualTo("chain");
        assertThat(metadataResponse.getPlatform()).isEqualTo("kserve_inferencegraph");
        assertThat(metadataResponse.getInputsCount()).isZero();
        assertThat(metadataResponse.getPropertiesMap()).containsEntry("nodes", "root: Sequence");
        UnaryCall ready = new UnaryCall(codec, "ModelReady")
                .send(ModelReadyRequest.newBuilder().setName("chain").build().toByteArray());
        assertThat(ModelReadyResponse.parseFrom(Objects.requireNonNull(ready.answer))
                        .getReady())
                .isTrue();
        UnaryCall server = new UnaryCall(codec, "ServerReady")
                .send(ServerReadyRequest.getDefaultInstance().toByteArray());
        assertThat(ServerReadyResponse.parseFrom(Objects.requireNonNull(server.answer))
                        .getReady())
                .isTrue();
        UnaryCall load = new UnaryCall(codec, "RepositoryModelLoad")
                .send(RepositoryModelLoadRequest.newBuilder()
                        .setModelName("chain")
                        .build()
                        .toByteArray());
        assertThat(load.code).isEqualTo(ErrorCode.UNIMPLEMENTED);
        assertThat(load.text).contains("RepositoryModelLoad");
    }
}
