// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RestGenerateTest {
    private final FakeEngine engine = new FakeEngine();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), Runnable::run, V2Options.defaults("1", 1 << 20));
    private long buffersBefore;

    @BeforeEach
    void setUp() {
        List<TensorSpec> inputs = List.of(
                new TensorSpec("text_input", DataType.BYTES, Shape.of(-1, 1)),
                new TensorSpec("ints", DataType.INT32, Shape.of(-1, 2, -1)),
                new TensorSpec("flag", DataType.BOOL, Shape.of(-1, 1)));
        engine.models.put(
                "llm",
                new FakeEngine.Model(
                        2,
                        FakeEngine::identity,
                        new ModelMetadata(new ServableId("llm", 2), "p", inputs, inputs, 8, Map.of())));
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private FakeExchange generate(String json) {
        return Wire.send(codec, new FakeExchange("POST", "/v2/models/llm/generate", Wire.utf8(json)));
    }

    private FakeExchange stream(String json) {
        return Wire.send(codec, new FakeExchange("POST", "/v2/models/llm/versions/2/generate_stream", Wire.utf8(json)));
    }

    private static InferenceResponse text(String... words) {
        List<Tensor> outputs = new ArrayList<>();
        for (String word : words) {
            byte[] bytes = Wire.utf8(word);
            MemoryRegion region = MemoryRegion.allocate(4 + bytes.length);
            region.setInt(0, bytes.length);
            region.setBytes(4, bytes, 0, bytes.length);
            outputs.add(Tensor.over("text_output", DataType.BYTES, Shape.of(1, 1), region, 0, 4 + bytes.length));
        }
        return new InferenceResponse(new ServableId("llm", 2), "", outputs, Map.of());
    }

    private FakeEngine.Held held() {
        FakeEngine.Held call = engine.held.get(0);
        call.request.release();
        return call;
    }

    @Test
    void membersBecomeTensorsAndParametersAndOutputsBecomeMembers() {
        engine.responseParameters = Map.of("tokens", 7L);
        FakeExchange x =
                generate("{\"id\":\"q\",\"text_input\":\"hé\",\"ints\":[1,2,3,4],\"flag\":true,\"stream\":false,"
                        + "\"parameters\":{\"temperature\":0.5,\"priority\":3,\"none\":null}}");
        assertThat(x.text())
                .isEqualTo("{\"id\":\"q\",\"model_name\":\"llm\",\"model_version\":\"2\",\"text_input\":\"hé\","
                        + "\"ints\":[1,2,3,4],\"flag\":true,\"tokens\":7}");
        assertThat(x.status).isEqualTo(200);
        assertThat(x.contentType).isEqualTo("application/json");
        InferenceRequest request = engine.last;
        assertThat(request.parameters()).isEqualTo(Map.of("stream", false, "temperature", 0.5));
        assertThat(request.options().priority()).isEqualTo(3);
        assertThat(request.inputs().stream().map(Tensor::toString))
                .containsExactly("BYTES[1,1] 'text_input'", "INT32[1,2,2] 'ints'", "BOOL[1,1] 'flag'");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"ints\":[1,2,3]} | 3 elements do not fill | 400",
                "{\"flag\":[true,false]} | 2 elements do not fill | 400",
                "{\"ints\":\"x\"} | input 'ints' | 400",
                "{\"ints\":[1,2],\"ints\":[1,2]} | input 'ints' already exists in request | 400",
                "{\"other\":[1]} | parameter 'other' has invalid type | 400",
                "{\"parameters\":{\"a\":{}}} | parameter 'a' has invalid type | 400",
                "{\"triton_x\":1} | reserved for Triton usage | 400",
                "[] | unexpected array | 400",
                "{\"ints\":[1,2]}} | expected | 400",
            })
    void badRequestsAreRejectedAsPlainJson(String json, String reason, int status) {
        for (FakeExchange x : List.of(generate(json), stream(json))) {
            assertThat(x.text()).contains(reason);
            assertThat(x.status).isEqualTo(status);
            assertThat(x.contentType).isEqualTo("application/json");
        }
    }

    @Test
    void anInputNamedParametersDoesNotHoldParameters() {
        engine.add("p", 1, FakeEngine::identity, new TensorSpec("parameters", DataType.INT8, Shape.of(1)));
        FakeExchange x = Wire.send(
                codec, new FakeExchange("POST", "/v2/models/p/generate", Wire.utf8("{\"parameters\":{\"a\":1}}")));
        assertThat(x.text()).contains("for nested schema also given as input tensor name");
        FakeExchange y =
                Wire.send(codec, new FakeExchange("POST", "/v2/models/p/generate", Wire.utf8("{\"parameters\":4}")));
        assertThat(y.text()).endsWith("\"parameters\":4}");
    }

    @Test
    void anUnknownModelIsNotFound() {
        FakeExchange x =
                Wire.send(codec, new FakeExchange("POST", "/v2/models/nobody/generate_stream", Wire.utf8("{}")));
        assertThat(x.status).isEqualTo(404);
    }

    @Test
    void aModelWithOneAnswerIsStreamedAsOneEvent() {
        FakeExchange x = stream("{\"text_input\":\"a\"}");
        assertThat(x.status).isEqualTo(200);
        assertThat(x.contentType).isEqualTo("text/event-stream; charset=utf-8");
        assertThat(x.pieces)
                .containsExactly("data: {\"model_name\":\"llm\",\"model_version\":\"2\",\"text_input\":\"a\"}\n\n");
        assertThat(x.ended).isTrue();
    }

    @Test
    void everyAnswerIsAnEventAtOnceAndAnErrorIsOneToo() {
        engine.holding = true;
        FakeExchange x = stream("{\"text_input\":\"a\"}");
        FakeEngine.Held call = held();
        assertThat(x.status).isZero();
        call.sink.next(text("one"), false);
        assertThat(x.pieces).hasSize(1);
        call.sink.next(text("two"), false);
        assertThat(x.pieces).hasSize(2);
        assertThat(x.ended).isFalse();
        call.sink.fail(ServingException.of(ErrorCode.UNAVAILABLE, "tired \"now\""));
        assertThat(x.pieces.get(1))
                .isEqualTo("data: {\"model_name\":\"llm\",\"model_version\":\"2\",\"text_output\":\"two\"}\n\n");
        assertThat(x.pieces.get(2)).isEqualTo("data: {\"error\":\"tired \\\"now\\\"\"}\n\n");
        assertThat(x.ended).isTrue();
        call.sink.next(text("late"), true);
        assertThat(x.pieces).hasSize(3);
    }

    @Test
    void anErrorBeforeTheFirstAnswerDecidesTheStatus() {
        engine.holding = true;
        FakeExchange x = stream("{\"text_input\":\"a\"}");
        held().sink.fail(ServingException.of(ErrorCode.UNAVAILABLE, "full"));
        assertThat(x.status).isEqualTo(503);
        assertThat(x.text()).isEqualTo("{\"error\":\"full\"}");
    }

    @Test
    void aStreamMayEndWithoutAnswers() {
        engine.holding = true;
        FakeExchange x = stream("{\"text_input\":\"a\"}");
        held().sink.next(text(), true);
        assertThat(x.status).isEqualTo(200);
        assertThat(x.pieces).isEmpty();
        assertThat(x.ended).isTrue();
    }

    @Test
    void aLeavingClientCancelsItsStream() {
        engine.holding = true;
        FakeExchange x = stream("{\"text_input\":\"a\"}");
        FakeEngine.Held call = held();
        call.sink.next(text("one"), false);
        x.leave();
        assertThat(call.cancelled).isTrue();
        call.sink.fail(ServingException.of(ErrorCode.CANCELLED, "gone"));
        assertThat(x.ended).isTrue();
    }

    @Test
    void aClientThatDoesNotReadIsCutOff() {
        engine.holding = true;
        FakeExchange x = stream("{\"text_input\":\"a\"}");
        FakeEngine.Held call = held();
        call.sink.next(text("one"), false);
        x.unsent = RestGenerate.MAX_UNSENT + 1;
        call.sink.next(text("two"), false);
        assertThat(x.aborted).isTrue();
        assertThat(call.cancelled).isTrue();
        call.sink.fail(ServingException.of(ErrorCode.CANCELLED, "gone"));
    }

    @Test
    void oneAnswerThenTheEndIsFineForGenerate() {
        engine.holding = true;
        FakeExchange x = generate("{\"text_input\":\"a\"}");
        FakeEngine.Held call = held();
        call.sink.next(text("one"), false);
        assertThat(x.status).isZero();
        call.sink.next(text(), true);
        assertThat(x.text()).isEqualTo("{\"model_name\":\"llm\",\"model_version\":\"2\",\"text_output\":\"one\"}");
    }

    @ParameterizedTest
    @CsvSource({"0", "2"})
    void generateWantsExactlyOneAnswer(int answers) {
        engine.holding = true;
        FakeExchange x = generate("{\"text_input\":\"a\"}");
        FakeEngine.Held call = held();
        for (int i = 0; i < answers; i++) {
            call.sink.next(text("one"), false);
        }
        call.sink.next(text(), true);
        assertThat(x.status).isEqualTo(400);
        assertThat(x.text())
                .contains("generate expects model to produce exactly 1 response, use generate stream for model that"
                        + " generates various number of responses");
    }

    @Test
    void aFailureAfterTheOneAnswerIsTheAnswer() {
        engine.holding = true;
        FakeExchange x = generate("{\"text_input\":\"a\"}");
        FakeEngine.Held call = held();
        call.sink.next(text("one"), false);
        call.sink.fail(ServingException.of(ErrorCode.UNAVAILABLE, "full"));
        assertThat(x.status).isEqualTo(503);
    }
}
