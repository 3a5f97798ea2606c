// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.protocols.v2.FakeCall;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckRequest;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse.ServingStatus;
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
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyResponse;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GrpcToRestTranscoderTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SERVICE = "/inference.GRPCInferenceService/";

    private final List<Runnable> offloaded = new ArrayList<>();
    private final GrpcToRestTranscoder bridge = new GrpcToRestTranscoder(offloaded::add);
    private long buffersBefore;

    private record Asked(
            String method,
            String target,
            List<Header> headers,
            String body,
            CompletableFuture<UpstreamResponse> answer) {}

    private final List<Asked> asked = new ArrayList<>();

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private CompletableFuture<UpstreamResponse> rest(
            String method, String target, List<Header> headers, MemoryRegion body) {
        byte[] bytes = new byte[body.size()];
        body.getBytes(0, bytes, 0, bytes.length);
        body.release();
        Asked now = new Asked(
                method, target, headers, new String(bytes, StandardCharsets.UTF_8), new CompletableFuture<>());
        asked.add(now);
        return now.answer;
    }

    private FakeCall call(String method, Message message) {
        return call(new FakeCall(method), message);
    }

    private FakeCall call(FakeCall call, Message message) {
        return call.start(new GrpcMethod(
                        call.path, GrpcMethod.Kind.UNARY, Operation.INFERENCE, c -> bridge.start(c, this::rest)))
                .message(message)
                .halfClose();
    }

    private void answer(int status, String body) {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        asked.get(asked.size() - 1)
                .answer
                .complete(new UpstreamResponse(status, List.of(), MemoryRegion.copyOf(bytes, 0, bytes.length)));
    }

    private static ModelInferRequest.Builder request() {
        return ModelInferRequest.newBuilder()
                .setModelName("iris model")
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype("FP32")
                        .addShape(1)
                        .addShape(2)
                        .setContents(InferTensorContents.newBuilder()
                                .addFp32Contents(1.5f)
                                .addFp32Contents(-2)));
    }

    @Test
    void aRequestIsAskedAsAClientOfRestWouldAsk() throws Exception {
        ModelInferRequest.Builder request = request()
                .setModelVersion("3")
                .setId("7")
                .putParameters("k", InferParameter.newBuilder().setInt64Param(2).build())
                .addInputs(InferInputTensor.newBuilder()
                        .setName("w")
                        .setDatatype("BYTES")
                        .addShape(2)
                        .putParameters(
                                "content_type",
                                InferParameter.newBuilder()
                                        .setStringParam("str")
                                        .build())
                        .setContents(InferTensorContents.newBuilder()
                                .addBytesContents(ByteString.copyFromUtf8("hé"))
                                .addBytesContents(ByteString.copyFrom(new byte[] {-1}))))
                .addOutputs(InferRequestedOutputTensor.newBuilder().setName("y"));
        FakeCall call = new FakeCall(SERVICE + "ModelInfer");
        call.metadata.put("x-user", "ann");
        call.metadata.put("grpc-timeout", "1S");
        call.metadata.put("content-type", "application/grpc");
        call(call, request.build());
        Asked sent = asked.get(0);
        assertThat(sent.method).isEqualTo("POST");
        assertThat(sent.target).isEqualTo("/v2/models/iris%20model/versions/3/infer");
        assertThat(sent.headers)
                .containsExactly(new Header("x-user", "ann"), new Header("content-type", "application/json"));
        assertThat(JSON.readTree(sent.body)).isEqualTo(JSON.readTree("""
            {"id": "7", "parameters": {"k": 2},
             "inputs": [
               {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.5, -2.0]},
               {"name": "w", "shape": [2], "datatype": "BYTES", "parameters": {"content_type": "str"},
                "data": ["hé", {"b64": "/w=="}]}],
             "outputs": [{"name": "y"}]}
            """));
        answer(200, """
            {"model_name": "m", "model_version": "3", "id": "7", "parameters": {"a": true},
             "outputs": [{"name": "y", "datatype": "INT64", "shape": [1], "data": [5], "parameters": {"b": 1}}]}
            """);
        ModelInferResponse response = ModelInferResponse.parseFrom(call.sent.get(0));
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(response.getModelName()).isEqualTo("m");
        assertThat(response.getModelVersion()).isEqualTo("3");
        assertThat(response.getId()).isEqualTo("7");
        assertThat(response.getParametersOrThrow("a").getBoolParam()).isTrue();
        assertThat(response.getOutputs(0).getContents().getInt64ContentsList()).containsExactly(5L);
        assertThat(response.getOutputs(0).getParametersOrThrow("b").getInt64Param())
                .isEqualTo(1);
        assertThat(response.getRawOutputContentsCount()).isZero();
    }

    @ParameterizedTest
    @CsvSource({
        "BOOL, 0001",
        "INT8, 80FF",
        "UINT16, FFFF0000",
        "INT64, 0000000000000080FFFFFFFFFFFFFF7F",
        "UINT64, FFFFFFFFFFFFFFFF0000000000000000",
        "FP16, 003C00C0",
        "BF16, 803F00C0",
        "FP32, CDCCCC3D0000803F",
        "FP64, 9A9999999999B93F000000000000F0BF",
        "BYTES, 0100000041020000004243",
    })
    void rawContentsAreAnsweredRaw(String type, String hex) throws Exception {
        ByteString raw = ByteString.copyFrom(java.util.HexFormat.of().parseHex(hex));
        FakeCall call = call(
                SERVICE + "ModelInfer",
                ModelInferRequest.newBuilder()
                        .setModelName("m")
                        .addInputs(InferInputTensor.newBuilder()
                                .setName("x")
                                .setDatatype(type)
                                .addShape(2))
                        .addRawInputContents(raw)
                        .build());
        JsonNode sent = JSON.readTree(asked.get(0).body);
        answer(200, "{\"outputs\":" + sent.get("inputs") + "}");
        ModelInferResponse response = ModelInferResponse.parseFrom(call.sent.get(0));
        assertThat(response.getRawOutputContentsList()).containsExactly(raw);
        assertThat(response.getModelName()).isEqualTo("m");
        assertThat(response.getOutputs(0).hasContents()).isFalse();
    }

    @Test
    void largeMessagesAreConvertedOnThePool() throws Exception {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder()
                .setModelName("m")
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype("INT32")
                        .addShape(50_000))
                .addRawInputContents(ByteString.copyFrom(new byte[200_000]));
        FakeCall call = call(SERVICE + "ModelInfer", request.build());
        assertThat(asked).isEmpty();
        offloaded.remove(0).run();
        answer(200, asked.get(0).body.replace("inputs", "outputs"));
        assertThat(call.sent).isEmpty();
        offloaded.remove(0).run();
        assertThat(ModelInferResponse.parseFrom(call.sent.get(0)).getRawOutputContents(0))
                .hasSize(200_000);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "400 | {\"error\":\"no such input\"}    | INVALID_ARGUMENT    | no such input",
                "404 | {\"detail\":\"Not Found\"}       | NOT_FOUND           | Not Found",
                "503 | busy                             | UNAVAILABLE         | busy",
                "500 | ''                               | INTERNAL            | the service answered 500",
                "200 | {\"predictions\":[1]}            | FAILED_PRECONDITION | no 'outputs'",
                "200 | none                             | FAILED_PRECONDITION | answered none, which is not a V2"
                        + " inference response",
                "200 | {\"outputs\":[{\"name\":\"y\",\"datatype\":\"INT8\",\"shape\":[9999999],\"data\":[1]}]}"
                        + "| FAILED_PRECONDITION | output 'y' has 9999999 elements",
            })
    void errorsKeepTheirCodeAndText(int status, String body, ErrorCode code, String said) {
        FakeCall call = call(SERVICE + "ModelInfer", request().build());
        answer(status, body);
        assertThat(call.code).isEqualTo(code);
        assertThat(call.text).contains(said);
        assertThat(call.sent).isEmpty();
    }

    @Test
    void requestsWithoutAJsonFormAreRejected() {
        FakeCall shared = call(
                SERVICE + "ModelInfer",
                ModelInferRequest.newBuilder()
                        .setModelName("m")
                        .addInputs(InferInputTensor.newBuilder()
                                .setName("x")
                                .setDatatype("INT8")
                                .addShape(1)
                                .putParameters(
                                        "shared_memory_region",
                                        InferParameter.newBuilder()
                                                .setStringParam("r")
                                                .build()))
                        .build());
        assertThat(shared.code).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(shared.text).contains("input 'x' is in shared memory");
        FakeCall few = call(
                SERVICE + "ModelInfer",
                ModelInferRequest.newBuilder()
                        .setModelName("m")
                        .addInputs(InferInputTensor.newBuilder()
                                .setName("x")
                                .setDatatype("INT8")
                                .addShape(5))
                        .addRawInputContents(ByteString.EMPTY)
                        .build());
        assertThat(few.code).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(few.text).contains("the contents of input 'x'");
        FakeCall nameless = call(SERVICE + "ModelInfer", ModelInferRequest.getDefaultInstance());
        assertThat(nameless.code).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(asked).isEmpty();
    }

    @Test
    void answersThatAGraphHasMergedAreOneAnswer() throws Exception {
        FakeCall call = call(SERVICE + "ModelInfer", request().setId("7").build());
        answer(200, """
            {"a": {"model_name": "x", "id": "1", "parameters": {"p": 1},
                   "outputs": [{"name": "y", "datatype": "INT8", "shape": [1], "data": [5]}]},
             "b": {"c": {"outputs": [{"name": "y", "datatype": "INT8", "shape": [0], "data": []}]}}}
            """);
        ModelInferResponse response = ModelInferResponse.parseFrom(call.sent.get(0));
        assertThat(response.getModelName()).isEqualTo("iris model");
        assertThat(response.getId()).isEqualTo("7");
        assertThat(response.getOutputsList())
                .extracting(ModelInferResponse.InferOutputTensor::getName)
                .containsExactly("a.y", "b.c.y");
        assertThat(response.getParametersOrThrow("a.p").getInt64Param()).isEqualTo(1);
        String deep = "{\"a\":".repeat(40) + "{\"outputs\":[]}" + "}".repeat(40);
        FakeCall lost = call(SERVICE + "ModelInfer", request().build());
        answer(200, deep);
        assertThat(lost.code).isEqualTo(ErrorCode.FAILED_PRECONDITION);
    }

    @Test
    void reflectionListsTheServices() {
        FakeCall call = new FakeCall("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
        byte[] listServices = {0x3a, 0x00};
        call.start(new GrpcMethod(
                        call.path,
                        GrpcMethod.Kind.BIDI_STREAMING,
                        Operation.INFERENCE,
                        c -> bridge.start(c, this::rest)))
                .message(listServices);
        assertThat(new String(call.sent.get(0), StandardCharsets.UTF_8)).contains("inference.GRPCInferenceService");
        assertThat(asked).isEmpty();
    }

    @Test
    void aCallThatCannotBeReachedFailsAsItsConnectionDid() {
        FakeCall call = call(SERVICE + "ModelInfer", request().build());
        asked.get(0).answer.completeExceptionally(ServingException.of(ErrorCode.UNAVAILABLE, "no connection"));
        assertThat(call.code).isEqualTo(ErrorCode.UNAVAILABLE);
    }

    @Test
    void aClientThatGoesEndsTheRequest() {
        FakeCall call = call(SERVICE + "ModelInfer", request().build());
        call.cancel();
        assertThat(asked.get(0).answer).isCancelled();
    }

    @Test
    void readinessIsAskedForAndNoIsAnAnswer() throws Exception {
        ModelReadyRequest model = ModelReadyRequest.newBuilder().setName("m").build();
        FakeCall ready = call(SERVICE + "ModelReady", model);
        assertThat(asked.get(0).method).isEqualTo("GET");
        assertThat(asked.get(0).target).isEqualTo("/v2/models/m/ready");
        answer(200, "");
        assertThat(ModelReadyResponse.parseFrom(ready.sent.get(0)).getReady()).isTrue();
        FakeCall loading = call(SERVICE + "ModelReady", model);
        answer(503, "");
        assertThat(ModelReadyResponse.parseFrom(loading.sent.get(0)).getReady()).isFalse();
        FakeCall absent = call(SERVICE + "ModelReady", model);
        answer(404, "{\"error\":\"no model\"}");
        assertThat(ModelReadyResponse.parseFrom(absent.sent.get(0)).getReady()).isFalse();
        FakeCall server = call(SERVICE + "ServerReady", ServerReadyRequest.getDefaultInstance());
        answer(400, "");
        assertThat(ServerReadyResponse.parseFrom(server.sent.get(0)).getReady()).isFalse();
        FakeCall health = call("/grpc.health.v1.Health/Check", HealthCheckRequest.getDefaultInstance());
        assertThat(asked.get(asked.size() - 1).target).isEqualTo("/v2/health/ready");
        answer(200, "");
        assertThat(HealthCheckResponse.parseFrom(health.sent.get(0)).getStatus())
                .isEqualTo(ServingStatus.SERVING);
    }

    @Test
    void metadataIsConverted() throws Exception {
        FakeCall model = call(
                SERVICE + "ModelMetadata",
                ModelMetadataRequest.newBuilder().setName("m").build());
        assertThat(asked.get(0).target).isEqualTo("/v2/models/m");
        answer(200, """
            {"name": "m", "versions": ["1", 2], "platform": null, "more": {}, "outputs": null,
             "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4], "tags": []}], "properties": {"a": "b"}}
            """);
        assertThat(ModelMetadataResponse.parseFrom(model.sent.get(0)))
                .isEqualTo(ModelMetadataResponse.newBuilder()
                        .setName("m")
                        .addVersions("1")
                        .addVersions("2")
                        .addInputs(ModelMetadataResponse.TensorMetadata.newBuilder()
                                .setName("x")
                                .setDatatype("FP32")
                                .addShape(-1)
                                .addShape(4))
                        .putProperties("a", "b")
                        .build());
        FakeCall server = call(SERVICE + "ServerMetadata", ServerMetadataRequest.getDefaultInstance());
        answer(200, "{\"name\":\"s\",\"version\":\"1\",\"extensions\":[\"e\"]}");
        assertThat(ServerMetadataResponse.parseFrom(server.sent.get(0)).getExtensionsList())
                .containsExactly("e");
        FakeCall none = call(SERVICE + "ServerMetadata", ServerMetadataRequest.getDefaultInstance());
        answer(200, "[1]");
        assertThat(none.code).isEqualTo(ErrorCode.FAILED_PRECONDITION);
    }

    @Test
    void methodsThatRestHasNothingForAreNamed() {
        assertThatThrownBy(() -> bridge.start(new FakeCall(SERVICE + "ModelStreamInfer"), this::rest))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.UNIMPLEMENTED);
                    assertThat(e.describe()).contains("ModelStreamInfer").contains("ModelInfer");
                });
    }
}
