// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import com.google.protobuf.MessageLite;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse.InferOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerLiveResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataResponse;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.UpstreamClient.Header;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RestToGrpcTranscoderTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SERVICE = "/inference.GRPCInferenceService/";
    private static final String X =
            "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1.5,-2]}],\"id\":\"7\"}";

    private final List<Runnable> offloaded = new ArrayList<>();
    private final RestToGrpcTranscoder bridge = new RestToGrpcTranscoder(offloaded::add);
    private final List<Asked> asked = new ArrayList<>();
    private long buffersBefore;

    private record Asked(String path, List<Header> metadata, byte[] message, CompletableFuture<MemoryRegion> answer) {
        void with(MessageLite message) {
            byte[] bytes = message.toByteArray();
            answer.complete(MemoryRegion.copyOf(bytes, 0, bytes.length));
        }
    }

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private CompletableFuture<MemoryRegion> grpc(String path, List<Header> metadata, MemoryRegion message) {
        byte[] bytes = new byte[message.size()];
        message.getBytes(0, bytes, 0, bytes.length);
        message.release();
        Asked now = new Asked(path, metadata, bytes, new CompletableFuture<>());
        asked.add(now);
        return now.answer;
    }

    private FakeExchange ask(String method, String path, String body, String... headers) {
        FakeExchange x = new FakeExchange(method, path, body.getBytes(StandardCharsets.UTF_8));
        for (int i = 0; i < headers.length; i += 2) {
            x.header(headers[i], headers[i + 1]);
        }
        bridge.answer(x, this::grpc);
        return x;
    }

    private static JsonNode json(FakeExchange x) throws Exception {
        assertThat(x.status).isEqualTo(200);
        assertThat(x.contentType).isEqualTo("application/json");
        return JSON.readTree(x.reply);
    }

    @Test
    void inferenceIsAskedAsAMessage() throws Exception {
        FakeExchange x = ask(
                "POST",
                "/v2/models/iris%20model/versions/3/infer",
                X,
                "x-user",
                "ann",
                "content-type",
                "application/json",
                "grpc-timeout",
                "1S",
                "host",
                "h");
        assertThat(asked.get(0).path).isEqualTo(SERVICE + "ModelInfer");
        assertThat(asked.get(0).metadata).containsExactly(new Header("x-user", "ann"));
        ModelInferRequest request = ModelInferRequest.parseFrom(asked.get(0).message);
        assertThat(request.getModelName()).isEqualTo("iris model");
        assertThat(request.getModelVersion()).isEqualTo("3");
        assertThat(request.getId()).isEqualTo("7");
        assertThat(request.getInputs(0).getContents().getFp32ContentsList()).containsExactly(1.5f, -2f);
        asked.get(0)
                .with(ModelInferResponse.newBuilder()
                        .setModelName("m")
                        .addOutputs(InferOutputTensor.newBuilder()
                                .setName("y")
                                .setDatatype("INT64")
                                .addShape(1)
                                .setContents(InferTensorContents.newBuilder().addInt64Contents(5)))
                        .build());
        assertThat(json(x)).isEqualTo(JSON.readTree("""
            {"model_name": "m", "outputs": [{"name": "y", "shape": [1], "datatype": "INT64", "data": [5]}]}
            """));
    }

    @Test
    void nullsAreMissingValues() throws Exception {
        ask("POST", "/v2/models/m/infer", """
            {"inputs": [
              {"name": "x", "shape": [2], "datatype": "FP64", "data": [1.5, null]},
              {"name": "city", "shape": [2], "datatype": "BYTES", "data": [null, "Bern"]}]}
            """);
        ModelInferRequest request = ModelInferRequest.parseFrom(asked.get(0).message);
        assertThat(request.getInputs(0).getContents().getFp64ContentsList()).containsExactly(1.5, Double.NaN);
        assertThat(request.getInputs(1).getContents().getBytesContentsList())
                .containsExactly(ByteString.EMPTY, ByteString.copyFromUtf8("Bern"));
        asked.get(0).with(ModelInferResponse.newBuilder().setModelName("m").build());
        FakeExchange x = ask("POST", "/v2/models/m/infer", """
            {"inputs": [{"name": "x", "shape": [2], "datatype": "INT64", "data": [1, null]}]}
            """);
        assertThat(x.status).isEqualTo(400);
    }

    @Test
    void largeResponsesAreEncodedOnThePool() {
        FakeExchange x = ask("POST", "/v2/models/m/infer", X + " ".repeat(100_000));
        assertThat(asked).isEmpty();
        offloaded.remove(0).run();
        asked.get(0).with(ModelInferResponse.getDefaultInstance());
        assertThat(x.status).isEqualTo(200);
    }

    @Test
    void readinessAndMetadataAreAskedFor() throws Exception {
        FakeExchange live = ask("GET", "/v2/health/live", "");
        assertThat(asked.get(0).path).isEqualTo(SERVICE + "ServerLive");
        asked.get(0).with(ServerLiveResponse.newBuilder().setLive(true).build());
        assertThat(live.status).isEqualTo(200);
        FakeExchange ready = ask("GET", "/v2/models/m/ready", "");
        asked.get(1).with(ModelReadyResponse.getDefaultInstance());
        assertThat(ready.status).isEqualTo(503);
        FakeExchange model = ask("GET", "/v2/models/m/versions/2", "");
        assertThat(ModelMetadataRequest.parseFrom(asked.get(2).message).getVersion())
                .isEqualTo("2");
        asked.get(2)
                .with(ModelMetadataResponse.newBuilder()
                        .setName("m")
                        .addVersions("2")
                        .setPlatform("p")
                        .addInputs(ModelMetadataResponse.TensorMetadata.newBuilder()
                                .setName("x")
                                .setDatatype("FP32")
                                .addShape(-1))
                        .putProperties("a", "b")
                        .build());
        assertThat(json(model)).isEqualTo(JSON.readTree("""
            {"name": "m", "versions": ["2"], "platform": "p", "outputs": [],
             "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}], "properties": {"a": "b"}}
            """));
        FakeExchange server = ask("GET", "/v2", "");
        asked.get(3)
                .with(ServerMetadataResponse.newBuilder()
                        .setName("s")
                        .setVersion("1")
                        .addExtensions("e")
                        .build());
        assertThat(json(server))
                .isEqualTo(JSON.readTree("{\"name\": \"s\", \"version\": \"1\", \"extensions\": [\"e\"]}"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "POST | /v1/models/m:predict | 501 | POST /v1/models/m:predict has no equivalent",
                "GET  | /v2/models/m/stats   | 501 | supports only gRPC",
                "GET  | /v2/models/m/infer   | 501 | has no equivalent",
                "POST | /v2/models/m/infer   | 400 | no 'inputs'",
            })
    void requestsWithoutAGrpcEquivalentAreRejected(String method, String path, int status, String said) {
        FakeExchange x = ask(method, path, "{}");
        assertThat(x.status).isEqualTo(status);
        assertThat(new String(x.reply, StandardCharsets.UTF_8)).contains(said);
        assertThat(asked).isEmpty();
    }

    @Test
    void binaryTensorsAreRejected() {
        FakeExchange x = ask("POST", "/v2/models/m/infer", X, "inference-header-content-length", "9");
        assertThat(x.status).isEqualTo(400);
        assertThat(new String(x.reply, StandardCharsets.UTF_8)).contains("send the inputs' data as JSON");
    }

    @Test
    void failuresKeepTheirMeaning() {
        FakeExchange busy = ask("POST", "/v2/models/m/infer", X);
        asked.get(0).answer.completeExceptionally(ServingException.of(ErrorCode.RESOURCE_EXHAUSTED, "as asked"));
        assertThat(busy.status).isEqualTo(429);
        assertThat(new String(busy.reply, StandardCharsets.UTF_8)).contains("as asked");
        FakeExchange broken = ask("POST", "/v2/models/m/infer", X);
        byte[] noMessage = {(byte) 0xFF};
        asked.get(1).answer.complete(MemoryRegion.copyOf(noMessage, 0, 1));
        assertThat(broken.status).isEqualTo(500);
    }

    @Test
    void aClientThatGoesEndsTheCall() {
        FakeExchange x = ask("POST", "/v2/models/m/infer", X);
        x.leave();
        assertThat(asked.get(0).answer).isCancelled();
    }
}
