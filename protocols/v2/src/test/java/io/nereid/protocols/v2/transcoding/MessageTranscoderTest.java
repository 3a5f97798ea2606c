// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse.InferOutputTensor;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MessageTranscoderTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private long buffersBefore;

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static ModelInferRequest request(String json) throws Exception {
        return ModelInferRequest.parseFrom(MessageTranscoder.request("m", "", bytes(json)));
    }

    private static String answer(ModelInferResponse.Builder response) throws Exception {
        return new String(MessageTranscoder.answer(response.build().toByteArray()), StandardCharsets.UTF_8);
    }

    @Test
    void everythingOfARequestGoesAlong() throws Exception {
        ModelInferRequest got = request("""
            {"outputs": [{"name": "y", "parameters": {"classification": 2}}, {"name": "z"}],
             "parameters": {"a": 1, "b": true, "c": "t", "d": 0.5, "e": {"f": [1]}, "g": null},
             "inputs": [
               {"data": [[1, 2], [3, -4]], "parameters": {"content_type": "np"}, "datatype": "INT32", "shape": [2, 2],
                "name": "x"},
               {"name": "w", "shape": [2], "datatype": "BYTES", "data": ["dog", {"b64": "/wA="}]}],
             "unknown": {}, "id": "7"}
            """);
        assertThat(got.getModelName()).isEqualTo("m");
        assertThat(got.getId()).isEqualTo("7");
        assertThat(got.getParametersOrThrow("a").getInt64Param()).isEqualTo(1);
        assertThat(got.getParametersOrThrow("b").getBoolParam()).isTrue();
        assertThat(got.getParametersOrThrow("c").getStringParam()).isEqualTo("t");
        assertThat(got.getParametersOrThrow("d").getDoubleParam()).isEqualTo(0.5);
        assertThat(got.getParametersOrThrow("e").getStringParam()).isEqualTo("{\"f\": [1]}");
        assertThat(got.getParametersMap()).doesNotContainKey("g");
        assertThat(got.getInputs(0).getName()).isEqualTo("x");
        assertThat(got.getInputs(0).getShapeList()).containsExactly(2L, 2L);
        assertThat(got.getInputs(0).getContents().getIntContentsList()).containsExactly(1, 2, 3, -4);
        assertThat(got.getInputs(0).getParametersOrThrow("content_type").getStringParam())
                .isEqualTo("np");
        assertThat(got.getInputs(1).getContents().getBytesContentsList())
                .containsExactly(ByteString.copyFromUtf8("dog"), ByteString.copyFrom(new byte[] {-1, 0}));
        assertThat(got.getOutputs(0).getParametersOrThrow("classification").getInt64Param())
                .isEqualTo(2);
        assertThat(got.getOutputs(1).getName()).isEqualTo("z");
        assertThat(got.getRawInputContentsCount()).isZero();
    }

    @Test
    void halfPrecisionGoesRaw() throws Exception {
        ModelInferRequest got = request("""
            {"inputs": [{"name": "h", "shape": [2], "datatype": "FP16", "data": [1, -2]},
                        {"name": "f", "shape": [1], "datatype": "FP32", "data": [1]}]}
            """);
        assertThat(got.getRawInputContentsList())
                .containsExactly(
                        ByteString.copyFrom(new byte[] {0, 0x3C, 0, (byte) 0xC0}),
                        ByteString.copyFrom(new byte[] {0, 0, (byte) 0x80, 0x3F}));
        assertThat(got.getInputs(1).hasContents()).isFalse();
    }

    @ParameterizedTest
    @CsvSource({
        "BOOL, '[true,false]'",
        "INT8, '[-128,127]'",
        "UINT8, '[0,255]'",
        "INT16, '[-32768,32767]'",
        "UINT16, '[0,65535]'",
        "INT32, '[-2147483648,2147483647]'",
        "UINT32, '[0,4294967295]'",
        "INT64, '[-9223372036854775808,9223372036854775807]'",
        "UINT64, '[0,18446744073709551615]'",
        "FP16, '[0.5,-2048.0]'",
        "BF16, '[0.5,-2.0]'",
        "FP32, '[0.1,-3.4E38]'",
        "FP64, '[0.1,-1.0E-300]'",
    })
    void numbersOfEveryTypeComeBack(String type, String data) throws Exception {
        ModelInferRequest there = request(
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"" + type + "\",\"data\":" + data + "}]}");
        ModelInferResponse.Builder back = ModelInferResponse.newBuilder()
                .setModelName("m")
                .addOutputs(InferOutputTensor.newBuilder()
                        .setName("x")
                        .setDatatype(type)
                        .addShape(2)
                        .setContents(there.getInputs(0).getContents()))
                .addAllRawOutputContents(there.getRawInputContentsList());
        assertThat(JSON.readTree(answer(back)).at("/outputs/0/data")).isEqualTo(JSON.readTree(data));
    }

    @Test
    void anAnswerBecomesABodyOfRest() throws Exception {
        ModelInferResponse.Builder response = ModelInferResponse.newBuilder()
                .setModelName("m")
                .setModelVersion("3")
                .setId("7")
                .putParameters(
                        "k", InferParameter.newBuilder().setUint64Param(-1).build())
                .addOutputs(InferOutputTensor.newBuilder()
                        .setName("w")
                        .setDatatype("BYTES")
                        .addShape(1)
                        .putParameters(
                                "content_type",
                                InferParameter.newBuilder()
                                        .setStringParam("str")
                                        .build())
                        .setContents(
                                InferTensorContents.newBuilder().addBytesContents(ByteString.copyFromUtf8("h\u00e9"))));
        assertThat(JSON.readTree(answer(response))).isEqualTo(JSON.readTree("""
            {"model_name": "m", "model_version": "3", "id": "7", "parameters": {"k": 18446744073709551615},
             "outputs": [{"name": "w", "shape": [1], "datatype": "BYTES", "parameters": {"content_type": "str"},
                          "data": ["h\u00e9"]}]}
            """));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{} | no 'inputs'",
                "[] | an object",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"X\",\"data\":[1]}]} | unknown datatype 'X'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\"}]} | input 'x' has no 'data'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"INT8\",\"data\":[1]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[99999999],\"datatype\":\"INT8\",\"data\":[1]}]} | more than"
                        + " its 'data'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[-1],\"datatype\":\"INT8\",\"data\":[1]}]} | dimension -1",
            })
    void invalidRequestsAreRejected(String json, String said) {
        assertThatThrownBy(() -> request(json)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.getMessage()).contains(said);
        });
    }

    @Test
    void answersThatContradictThemselvesAreTheServicesFault() {
        InferOutputTensor.Builder x =
                InferOutputTensor.newBuilder().setName("x").setDatatype("INT32").addShape(2);
        for (ModelInferResponse.Builder wrong : new ModelInferResponse.Builder[] {
            ModelInferResponse.newBuilder().addOutputs(x),
            ModelInferResponse.newBuilder().addOutputs(x).addRawOutputContents(ByteString.copyFrom(new byte[7])),
            ModelInferResponse.newBuilder()
                    .addOutputs(x)
                    .addRawOutputContents(ByteString.copyFrom(new byte[8]))
                    .addRawOutputContents(ByteString.EMPTY),
            ModelInferResponse.newBuilder().addOutputs(x.clone().setDatatype("STRING")),
            ModelInferResponse.newBuilder().addOutputs(x.clone().addShape(-1)),
        }) {
            assertThatThrownBy(() -> answer(wrong))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL));
        }
        assertThatThrownBy(() -> MessageTranscoder.answer(new byte[] {1, 2, 3}))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("not a ModelInferResponse");
    }
}
