// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import static io.nereid.protocols.v2.Wire.hex;
import static io.nereid.protocols.v2.Wire.join;
import static io.nereid.protocols.v2.Wire.utf8;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.FloatStyle;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RestInferenceTest {
    private static final String GOLDEN_INPUT = "{\"name\":\"x\",\"shape\":[2,4],\"datatype\":\"FP32\","
            + "\"data\":[[6.8,2.8,4.8,1.4],[6.0,3.4,4.5,1.6]]}";
    private static final byte[] FP16 = hex("cd469a41cd449a3d0046cd428044663e");
    private static final byte[] FP32 = hex("9a99d940333333409a9999403333b33f0000c0409a99594000009040cdcccc3f");

    private final FakeEngine engine = new FakeEngine();
    private final ArrayDeque<Runnable> pool = new ArrayDeque<>();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), pool::add, V2Options.defaults("1.2.3", 64 << 20));
    private long buffersBefore;

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private FakeExchange post(String path, byte[] body) {
        return new FakeExchange("POST", path, body);
    }

    private FakeExchange infer(String json) {
        return Wire.send(codec, post("/v2/models/identity/infer", utf8(json)));
    }

    private static String input(String datatype, String shape, String data) {
        return "{\"inputs\":[{\"name\":\"x\",\"shape\":" + shape + ",\"datatype\":\"" + datatype + "\",\"data\":" + data
                + "}]}";
    }

    private void goldenModel() {
        engine.add("FP16OutputModel", 0, request -> {
            Tensor x = request.inputs().get(0);
            Tensor half = Tensor.allocate("fp16_output", DataType.FP16, Shape.of(8));
            half.region().setBytes(0, FP16, 0, 16);
            return List.of(half, x.retainAs("fp32_output", Shape.of(8)));
        });
    }

    @Test
    void goldenAnswerWithBothOutputsAsBytes() {
        goldenModel();
        FakeExchange x = Wire.send(
                codec,
                post(
                        "/v2/models/FP16OutputModel/infer",
                        utf8("{\"id\":\"123\",\"inputs\":[" + GOLDEN_INPUT
                                + "],\"parameters\":{\"binary_data_output\":true}}")));
        assertThat(x.status).isEqualTo(200);
        assertThat(x.replyHeader("inference-header-content-length")).isEqualTo("256");
        assertThat(x.contentType).isEqualTo("application/octet-stream");
        assertThat(x.reply)
                .isEqualTo(join(
                        utf8("{\"id\":\"123\",\"model_name\":\"FP16OutputModel\",\"model_version\":null,\"outputs\":["
                                + "{\"name\":\"fp16_output\",\"shape\":[8],\"datatype\":\"FP16\","
                                + "\"parameters\":{\"binary_data_size\":16}},{\"name\":\"fp32_output\",\"shape\":[8],"
                                + "\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":32}}]}"),
                        FP16,
                        FP32));
    }

    @Test
    void goldenAnswerWithOneOutputAsBytes() {
        goldenModel();
        FakeExchange x = Wire.send(
                codec,
                post(
                        "/v2/models/FP16OutputModel/infer",
                        utf8("{\"id\":\"123\",\"inputs\":[" + GOLDEN_INPUT + "],\"outputs\":["
                                + "{\"name\":\"fp16_output\",\"parameters\":{\"binary_data\":true}},"
                                + "{\"name\":\"fp32_output\",\"parameters\":{\"binary_data\":false}}]}")));
        assertThat(x.replyHeader("inference-header-content-length")).isEqualTo("345");
        assertThat(x.reply)
                .isEqualTo(join(
                        utf8("{\"id\":\"123\",\"model_name\":\"FP16OutputModel\",\"model_version\":null,\"outputs\":["
                                + "{\"name\":\"fp16_output\",\"shape\":[8],\"datatype\":\"FP16\","
                                + "\"parameters\":{\"binary_data_size\":16}},{\"name\":\"fp32_output\",\"shape\":[8],"
                                + "\"datatype\":\"FP32\",\"data\":[6.800000190734863,2.799999952316284,"
                                + "4.800000190734863,1.399999976158142,6.0,3.4000000953674316,4.5,"
                                + "1.600000023841858]}]}"),
                        FP16));
    }

    @Test
    void anAnswerOfJsonAloneKeepsTheOrderOfMembersThatClientsSee() {
        engine.responseParameters = Map.of("p", 7L);
        FakeExchange x = infer("{\"id\":\"a\\\"b\",\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"INT32\","
                + "\"data\":[1,-2]}]}");
        assertThat(x.status).isEqualTo(200);
        assertThat(x.contentType).isEqualTo("application/json");
        assertThat(x.text())
                .isEqualTo("{\"model_name\":\"identity\",\"model_version\":\"1\",\"id\":\"a\\\"b\","
                        + "\"parameters\":{\"p\":7},\"outputs\":[{\"name\":\"x\",\"shape\":[1,2],"
                        + "\"datatype\":\"INT32\",\"data\":[1,-2]}]}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "BOOL | [true,false] | [true,false]",
                "INT8 | [-128,127] | [-128,127]",
                "INT16 | [-32768,32767] | [-32768,32767]",
                "INT32 | [-2147483648,2147483647] | [-2147483648,2147483647]",
                "INT64 | [-9223372036854775808,9223372036854775807] | [-9223372036854775808,9223372036854775807]",
                "UINT8 | [0,255] | [0,255]",
                "UINT16 | [0,65535] | [0,65535]",
                "UINT32 | [0,4294967295] | [0,4294967295]",
                "UINT64 | [0,18446744073709551615] | [0,18446744073709551615]",
                "FP16 | [1.5,65504] | [1.5,65504.0]",
                "BF16 | [1.5,-3] | [1.5,-3.0]",
                "FP32 | [NaN,-Infinity] | [NaN,-Infinity]",
                "FP64 | [0.1,1e300] | [0.1,1e300]",
                "BYTES | [\"a\\u00e9\",\"\"] | [\"aé\",\"\"]",
            })
    void everyDataTypeGoesThroughJson(String type, String data, String answer) {
        FakeExchange x = infer(input(type, "[2]", data));
        assertThat(x.text()).contains("\"datatype\":\"" + type + "\"").endsWith("\"data\":" + answer + "}]}");
        assertThat(x.status).isEqualTo(200);
    }

    @Test
    void bytesThatAreNotTextAreBase64InBothDirections() {
        FakeExchange x = infer(input("BYTES", "[2]", "[{\"b64\":\"/wA=\"},\"ok\"]"));
        assertThat(x.text()).endsWith("\"data\":[{\"b64\":\"/wA=\"},\"ok\"]}]}");
    }

    @Test
    void shortestDigitsCanBeChosen() {
        V2Options shortest =
                V2Options.builder("v", 1 << 20).floatStyle(FloatStyle.SHORTEST).build();
        V2Codec other = new V2Codec(engine, engine, Observability.NONE, Clock.system(), pool::add, shortest);
        FakeExchange x = Wire.send(other, post("/v2/models/identity/infer", utf8(input("FP32", "[1]", "[6.8]"))));
        assertThat(x.text()).endsWith("\"data\":[6.8]}]}");
    }

    @Test
    void dataMayComeBeforeItsDatatypeAndBeNested() {
        FakeExchange x = infer("{\"inputs\":[{\"data\":[[1],[2]],\"parameters\":null,\"datatype\":\"UINT8\","
                + "\"unknown\":{\"a\":[1]},\"shape\":[2,1],\"name\":\"x\"}],\"extra\":[],\"outputs\":null}");
        assertThat(x.text()).endsWith("\"shape\":[2,1],\"datatype\":\"UINT8\",\"data\":[1,2]}]}");
    }

    @Test
    void aRawInputIsAViewOfTheBody() {
        String json = "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"INT16\","
                + "\"parameters\":{\"binary_data_size\":4}},{\"name\":\"b\",\"shape\":[1],\"datatype\":\"INT8\","
                + "\"data\":[5]},{\"name\":\"c\",\"shape\":[2],\"datatype\":\"BYTES\","
                + "\"parameters\":{\"binary_data_size\":9}}]}";
        engine.holding = true;
        FakeExchange x = Wire.send(
                codec,
                post("/v2/models/identity/infer", join(utf8(json), hex("0100ffff"), hex("01000000ff 00000000")))
                        .header("Inference-Header-Content-Length", json.length()));
        InferenceRequest request = engine.held.get(0).request;
        assertThat(request.inputs().get(0).region()).isSameAs(x.body());
        assertThat(request.inputs().get(0).offset()).isEqualTo(json.length());
        assertThat(request.inputs().get(2).region()).isSameAs(x.body());
        engine.answer(engine.held.get(0));
        assertThat(x.text())
                .contains("\"data\":[1,-1]")
                .contains("\"data\":[5]")
                .contains("[{\"b64\":\"/w==\"},\"\"]");
    }

    @Test
    void aBareTensorIsTheOnlyInputAndIsAnsweredAsBytes() {
        byte[] body = new byte[32];
        body[3] = 1;
        FakeExchange x =
                Wire.send(codec, post("/v2/models/identity/infer", body).header("Inference-Header-Content-Length", 0));
        assertThat(x.status).isEqualTo(200);
        assertThat(x.text()).contains("\"shape\":[2,4]").contains("{\"binary_data_size\":32}");
        assertThat(x.reply).endsWith(body);
    }

    @Test
    void aBareTextBecomesTheOneElementOfItsInput() {
        engine.add("text", 1, FakeEngine::identity, new TensorSpec("t", DataType.BYTES, Shape.of(1)));
        FakeExchange x = Wire.send(
                codec, post("/v2/models/text/infer", utf8("hello")).header("Inference-Header-Content-Length", 0));
        assertThat(x.reply).endsWith(join(hex("05000000"), utf8("hello")));
    }

    @Test
    void rawBinaryRequestsAreRejectedWhereTheyAreAmbiguous() {
        TensorSpec open = new TensorSpec("o", DataType.FP32, Shape.of(-1, -1));
        TensorSpec words = new TensorSpec("w", DataType.BYTES, Shape.of(2));
        engine.add("open", 1, FakeEngine::identity, open);
        engine.add("words", 1, FakeEngine::identity, words);
        engine.add("two", 1, FakeEngine::identity, open, words);
        assertThat(bare("two"))
                .contains("Raw request must only have 1 input (found 2) to be deduced but got 2 inputs in 'two' model"
                        + " configuration");
        assertThat(bare("open"))
                .contains("The shape of the raw input 'o' can not be deduced because there are more than one"
                        + " variable-sized dimension");
        assertThat(bare("words")).contains("For BYTE datatype raw input 'w', the model must have input shape [1]");
    }

    private String bare(String model) {
        FakeExchange x = Wire.send(
                codec,
                post("/v2/models/" + model + "/infer", new byte[8]).header("Inference-Header-Content-Length", 0));
        assertThat(x.status).isEqualTo(400);
        return x.text();
    }

    @Test
    void requestedOutputsFilterAndOrderTheAnswer() {
        FakeExchange x = infer(
                "{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]},"
                        + "{\"name\":\"b\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[2]},"
                        + "{\"name\":\"c\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[3]}],"
                        + "\"parameters\":{\"binary_data_output\":true},"
                        + "\"outputs\":[{\"parameters\":null,\"name\":\"c\"},{\"name\":\"a\",\"parameters\":{\"classification\":2}}]}");
        assertThat(x.text())
                .endsWith("\"outputs\":[{\"name\":\"c\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[3]},"
                        + "{\"name\":\"a\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]}]}");
        assertThat(engine.last.outputs()).containsExactly(new RequestedOutput("c", 0), new RequestedOutput("a", 2));
    }

    @Test
    void parametersReachTheModelExceptThoseOfTheProtocol() {
        infer(input("INT8", "[1]", "[1]")
                .replace(
                        "{\"inputs\"",
                        "{\"parameters\":{\"i\":3,\"d\":1.5,\"s\":\"t\",\"b\":true,\"n\":null,\"timeout\":5,"
                                + "\"priority\":2,\"sequence_id\":\"q\",\"sequence_start\":true,"
                                + "\"binary_data_output\":false},\"inputs\""));
        assertThat(engine.last.parameters()).isEqualTo(Map.of("i", 3L, "d", 1.5, "s", "t", "b", true));
        assertThat(engine.last.options())
                .isEqualTo(new InferenceRequest.Options(
                        2, 5_000, new InferenceRequest.SequenceFlags("q", true, false), null));
        assertThat(engine.last.deadlineNanos()).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void aCancelledExchangeCancelsItsRequest() {
        engine.holding = true;
        FakeExchange x = infer(input("INT8", "[1]", "[1]"));
        assertThat(engine.held.get(0).cancelled).isFalse();
        x.leave();
        assertThat(engine.held.get(0).cancelled).isTrue();
        engine.held.get(0).request.release();
        engine.held.get(0).sink.fail(ServingException.of(ErrorCode.CANCELLED, "gone"));
        assertThat(x.status).isEqualTo(499);
    }

    @Test
    void largeJsonIsDecodedAndEncodedOnTheCodecPool() {
        StringBuilder data = new StringBuilder("[1");
        data.append(",1".repeat(39_999)).append(']');
        FakeExchange x = infer(input("INT64", "[40000]", data.toString()));
        assertThat(x.status).isZero();
        assertThat(pool).hasSize(1);
        engine.holding = true;
        pool.remove().run();
        engine.answer(engine.held.get(0));
        assertThat(x.status).as("the answer is large too").isZero();
        pool.remove().run();
        assertThat(x.status).isEqualTo(200);
        assertThat(x.text()).endsWith("\"data\":" + data + "}]}");
        assertThat(pool).isEmpty();
    }

    @Test
    void largeBinaryBodiesStayOnTheCallingThread() {
        String json = "{\"inputs\":[{\"name\":\"x\",\"shape\":[262144],\"datatype\":\"INT32\","
                + "\"parameters\":{\"binary_data_size\":1048576}}],\"parameters\":{\"binary_data_output\":true}}";
        byte[] tensor = new byte[1 << 20];
        ByteBuffer.wrap(tensor).putLong(4711);
        FakeExchange x = Wire.send(
                codec,
                post("/v2/models/identity/infer", join(utf8(json), tensor))
                        .header("Inference-Header-Content-Length", json.length()));
        assertThat(x.status).isEqualTo(200);
        assertThat(x.reply).endsWith(tensor);
    }

    @Test
    void aModelWithManyAnswersIsNotForHttp() {
        engine.holding = true;
        FakeExchange x = infer(input("INT8", "[1]", "[1]"));
        FakeEngine.Held call = engine.held.get(0);
        for (int i = 0; i < 3; i++) {
            Tensor t = Tensor.allocate("x", DataType.INT8, Shape.of(1));
            call.sink.next(
                    new InferenceResponse(new ServableId("identity", 1), "", new ArrayList<>(List.of(t)), Map.of()),
                    i == 2);
        }
        call.request.release();
        assertThat(x.status).isEqualTo(501);
        assertThat(x.text()).contains("HTTP end point doesn't support models with decoupled transaction policy");
        assertThat(call.cancelled).isTrue();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'' | unexpected end of the document",
                "{ | unexpected end of the document",
                "[] | unexpected array",
                "{} | the request has no 'inputs'",
                "{\"inputs\":[]}x | expected",
                "{\"inputs\":{}} | expected",
                "{\"inputs\":[1]} | expected",
                "{\"inputs\":[],\"inputs\":[]} | more than one 'inputs'",
                "{\"inputs\":[{\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]}]} | input 0 of the request has no"
                        + " 'name'",
                "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\",\"data\":[1]}]} | input 'x' has no 'shape'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"data\":[1]}]} | input 'x' has no 'datatype'",
                "{\"inputs\":[{\"name\":\"x\",\"name\":\"y\"}]} | more than one 'name'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\"}]} | 'shared_memory_region' in"
                        + " 'parameters'. But no field is set",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1],"
                        + "\"parameters\":{\"binary_data_size\":1}}]} | But set 'data' 'binary_data_size'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":{\"binary_data_size\":1}}]}"
                        + " | must specify valid 'Infer-Header-Content-Length' in request header and 'binary_data_size'"
                        + " when passing inputs in binary data format",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":"
                        + "{\"binary_data_size\":-1}}]} | 'binary_data_size' -1",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[-1],\"datatype\":\"INT8\",\"data\":[1]}]} | dimension -1",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[9223372036854775807,3],\"datatype\":\"INT8\",\"data\":[1]}]}"
                        + " | more elements than fit",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[4611686018427387904],\"datatype\":\"FP64\",\"data\":[1]}]}"
                        + " | more bytes than fit",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1000000000],\"datatype\":\"FP64\",\"data\":[1]}]}"
                        + " | exceeds the maximum allowed value",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1000000],\"datatype\":\"FP64\",\"data\":[1]}]}"
                        + " | more than its 'data' can hold",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1.5],\"datatype\":\"INT8\",\"data\":[1]}]} | 1.5",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"INT8\",\"data\":[1]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1,2]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[128]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[-1]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"FP16\",\"data\":[70000]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[\"1\"]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[1]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[2]}]} | input 'x'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"float\",\"data\":[1]}]} | unknown datatype"
                        + " 'float'",
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]},"
                        + "{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]}]} | input 'x' already"
                        + " exists in request",
                "{\"inputs\":[],\"outputs\":[{\"name\":\"y\"},{\"name\":\"y\"}]} | output 'y' already exists in"
                        + " request",
                "{\"inputs\":[],\"outputs\":[{\"name\":\"y\"}]} | unexpected inference output 'y' for model 'identity'",
                "{\"inputs\":[],\"outputs\":[{}]} | output 0 of the request has no 'name'",
                "{\"inputs\":[],\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":-1}}]} | got -1",
                "{\"inputs\":[],\"parameters\":{\"a\":[1]}} | parameter 'a' has invalid type. It should be either"
                        + " 'int', 'bool', 'string', or 'double'.",
                "{\"inputs\":[],\"parameters\":{\"triton_x\":1}} | parameter keys starting with 'triton_' are reserved"
                        + " for Triton usage and should not be specified.",
                "{\"inputs\":[],\"parameters\":{\"priority\":-1}} | invalid value for 'priority', expected value >= 0.",
                "{\"inputs\":[],\"parameters\":{\"timeout\":\"1\"}} | invalid value type for 'timeout' parameter,"
                        + " expected an integer.",
                "{\"inputs\":[],\"parameters\":{\"sequence_start\":1}} | invalid value type for 'sequence_start'"
                        + " parameter, expected true or false.",
            })
    void badJsonIsRejectedWithAReasonAndTheNextRequestWorks(String json, String reason) {
        FakeExchange x = infer(json);
        assertThat(x.text())
                .contains(io.nereid.transport.api.HttpReply.quote(reason).replaceAll("^\"|\"$", ""));
        assertThat(x.status).isEqualTo(400);
        assertThat(infer(input("INT8", "[1]", "[1]")).status).isEqualTo(200);
    }

    @Test
    void deepNestingIsRejected() {
        FakeExchange x = infer(input("INT8", "[1]", "[".repeat(5_000) + "1" + "]".repeat(5_000)));
        assertThat(x.status).isEqualTo(400);
    }

    @Test
    void sharedMemoryIsNotServedUnlessTheOperatorWantsIt() {
        FakeExchange x = infer("{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":"
                + "{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":1}}]}");
        assertThat(x.status).isEqualTo(501);
        assertThat(x.text())
                .contains(
                        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "3 | 2 | unexpected size for input 'x', expecting 1 additional bytes for model 'identity'",
                "4 | 5 | unexpected additional input data for model 'identity'",
                "3 | 3 | input byte size mismatch for input 'x' for model 'identity'. Expected 4, got 3",
            })
    void binarySizesMustAddUp(int declared, int sent, String reason) {
        String json = "{\"inputs\":[{\"name\":\"x\",\"shape\":[4],\"datatype\":\"INT8\",\"parameters\":"
                + "{\"binary_data_size\":" + declared + "}}]}";
        FakeExchange x = Wire.send(
                codec,
                post("/v2/models/identity/infer", join(utf8(json), new byte[sent]))
                        .header("Inference-Header-Content-Length", json.length()));
        assertThat(x.text()).contains(reason);
        assertThat(x.status).isEqualTo(400);
    }

    @ParameterizedTest
    @CsvSource({"-1", "99", "abc", "99999999999999999999", "''"})
    void theHeaderLengthMustLieWithinTheBody(String header) {
        FakeExchange x = Wire.send(
                codec,
                post("/v2/models/identity/infer", utf8("{\"inputs\":[]}"))
                        .header("Inference-Header-Content-Length", header));
        assertThat(x.text()).contains("inference header size should be in range (0, 13), got: " + header);
        assertThat(x.status).isEqualTo(400);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "[2] | 01000000 61 | unexpected number of string elements 1 for inference input 'x' for model"
                        + " 'identity', expecting 2",
                "[1] | 010000 | incomplete string length indicator for inference input 'x' for model 'identity',"
                        + " expecting 4 bytes but only 3 bytes available.",
                "[1] | 05000000 61 | incomplete string data for inference input 'x' for model 'identity', expecting"
                        + " string of length 5 but only 1 bytes available.",
                "[1] | ffffffff 61 | expecting string of length 4294967295 but only 1 bytes available.",
            })
    void rawTextsMustBeWellFormed(String shape, String bytes, String reason) {
        byte[] raw = hex(bytes);
        String json = "{\"inputs\":[{\"name\":\"x\",\"shape\":" + shape + ",\"datatype\":\"BYTES\",\"parameters\":"
                + "{\"binary_data_size\":" + raw.length + "}}]}";
        FakeExchange x = Wire.send(
                codec,
                post("/v2/models/identity/infer", join(utf8(json), raw))
                        .header("Inference-Header-Content-Length", json.length()));
        assertThat(x.text()).contains(reason);
        assertThat(x.status).isEqualTo(400);
    }

    @Test
    void bytesWithoutTheHeaderGetAHint() {
        FakeExchange x = Wire.send(
                codec,
                post("/v2/models/identity/infer", hex("0102")).header("content-type", "application/octet-stream"));
        assertThat(x.status).isEqualTo(400);
        assertThat(x.text()).contains("Inference-Header-Content-Length");
    }

    @ParameterizedTest
    @CsvSource({"1x", "-1", "1.0", "99999999999999999999", "+1"})
    void versionsMustBeNumbers(String version) {
        FakeExchange x = Wire.send(
                codec,
                post(
                        "/v2/models/identity/versions/" + version.replace("+", "%2B") + "/infer",
                        utf8("{\"inputs\":[]}")));
        assertThat(x.text())
                .contains("failed to get model version from specified version string '" + version + "'")
                .contains("version should be an integral value > 0");
        assertThat(x.status).isEqualTo(400);
    }

    private static final String ONE =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,1],\"datatype\":\"FP32\",\"data\":[1]}]}";

    @Test
    void aVersionThatBeginsWithALetterIsALabel() {
        Wire.send(codec, post("/v2/models/identity/versions/canary/infer", utf8(ONE)));
        assertThat(engine.last.model()).isEqualTo(new ModelRef("identity", ModelRef.ANY, "canary"));
    }

    @Test
    void aSignatureIsAskedForByAParameter() {
        Wire.send(
                codec,
                post(
                        "/v2/models/identity/infer",
                        utf8(ONE.replaceFirst("\\{", "{\"parameters\":{\"signature_name\":\"other\"},"))));
        assertThat(engine.last.options().signature()).isEqualTo("other");
        assertThat(engine.last.parameters()).isEmpty();
    }

    @Test
    void unknownModelsAndVersionsAreNotFound() {
        assertThat(Wire.send(codec, post("/v2/models/..%2F..%2Fetc/infer", utf8("{\"inputs\":[]}"))).status)
                .isEqualTo(404);
        FakeExchange x = Wire.send(codec, post("/v2/models/identity/versions/7/infer", utf8("{\"inputs\":[]}")));
        assertThat(x.status).isEqualTo(404);
        assertThat(x.text()).contains("Request for unknown model: 'identity' version 7 is not found");
    }

    @Test
    void aSequenceIsNamedByAnUnsignedNumberOrATextAndZeroIsNone() {
        String body = input("INT8", "[1]", "[1]");
        infer(body.replace(
                "{\"inputs\"",
                "{\"parameters\":{\"sequence_id\":18446744073709551615,\"sequence_end\":true},\"inputs\""));
        assertThat(engine.last.options().sequence()).isEqualTo(new InferenceRequest.SequenceFlags(-1L, false, true));
        infer(body.replace("{\"inputs\"", "{\"parameters\":{\"sequence_id\":0,\"sequence_start\":true},\"inputs\""));
        assertThat(engine.last.options()).isSameAs(InferenceRequest.Options.NONE);
        infer(body);
        assertThat(engine.last.options()).isSameAs(InferenceRequest.Options.NONE);
    }

    @Test
    void headersThatTheOperatorChoseReachTheModel() {
        V2Codec forwarding = new V2Codec(
                engine,
                engine,
                Observability.NONE,
                Clock.system(),
                pool::add,
                V2Options.builder("v", 1 << 20)
                        .forwardHttpHeaders(Pattern.compile("^my-|priority"))
                        .build());
        byte[] body = utf8(input("INT8", "[1]", "[1]"));
        Wire.send(
                forwarding,
                post("/v2/models/identity/infer", body).header("my-user", "u").header("your-user", "w"));
        assertThat(engine.last.parameters()).isEqualTo(Map.of("my-user", "u"));
        FakeExchange x =
                Wire.send(forwarding, post("/v2/models/identity/infer", body).header("priority", "1"));
        assertThat(x.status).isEqualTo(400);
        assertThat(x.text()).contains("is reserved for Triton usage and cannot be forwarded.");
    }
}
