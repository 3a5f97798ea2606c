// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Valid messages with bytes changed, cut, repeated and spliced: each gets a client error or a response, and is freed.
 */
class FuzzTest {
    private static final int CASES = Integer.getInteger("nereid.fuzz.cases", 30_000);
    private static final Set<ErrorCode> CLIENT_FAULTS =
            EnumSet.of(ErrorCode.OK, ErrorCode.INVALID_ARGUMENT, ErrorCode.NOT_FOUND, ErrorCode.UNIMPLEMENTED);

    private final FakeEngine engine = new FakeEngine();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), Runnable::run, V2Options.defaults("1", 1 << 20));

    private static byte[] mutate(byte[] valid, List<byte[]> all, Random random) {
        byte[] bytes = valid.clone();
        for (int n = 1 + random.nextInt(3); n > 0; n--) {
            int at = bytes.length == 0 ? 0 : random.nextInt(bytes.length);
            switch (random.nextInt(6)) {
                case 0 -> {
                    if (bytes.length > 0) {
                        bytes[at] = (byte) random.nextInt(256);
                    }
                }
                case 1 -> {
                    if (bytes.length > 0) {
                        bytes[at] ^= (byte) (1 << random.nextInt(8));
                    }
                }
                case 2 -> bytes = Arrays.copyOf(bytes, at);
                case 3 -> {
                    int end = Math.min(bytes.length, at + random.nextInt(20));
                    bytes = Wire.join(Arrays.copyOf(bytes, end), Arrays.copyOfRange(bytes, at, bytes.length));
                }
                case 4 -> {
                    int end = Math.min(bytes.length, at + random.nextInt(8));
                    bytes = Wire.join(Arrays.copyOf(bytes, at), Arrays.copyOfRange(bytes, end, bytes.length));
                }
                default -> {
                    byte[] other = all.get(random.nextInt(all.size()));
                    int from = random.nextInt(other.length);
                    bytes = Wire.join(Arrays.copyOf(bytes, at), Arrays.copyOfRange(other, from, other.length));
                }
            }
        }
        return bytes;
    }

    private static String json(String inputs) {
        return "{\"id\":\"7\",\"parameters\":{\"a\":1,\"timeout\":5,\"binary_data_output\":true},\"inputs\":[" + inputs
                + "],\"outputs\":[{\"name\":\"x\",\"parameters\":{\"binary_data\":true,\"classification\":2}}],\"z\":[{}]}";
    }

    private static List<byte[]> bodies() {
        List<byte[]> bodies = new ArrayList<>();
        String[] inputs = {
            "{\"name\":\"x\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[[1.5,-2e3],[NaN,0.25]]}",
            "{\"name\":\"x\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":[\"a\\u00e9\\n\",{\"b64\":\"AAE=\"}]}",
            "{\"data\":[1,2,3],\"name\":\"x\",\"shape\":[3],\"datatype\":\"UINT8\",\"parameters\":{\"p\":[1]}}",
            "{\"name\":\"x\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[true]},"
                    + "{\"name\":\"y\",\"shape\":[1],\"datatype\":\"FP16\",\"data\":[1]}",
            "{\"name\":\"x\",\"shape\":[2],\"datatype\":\"INT32\",\"parameters\":{\"binary_data_size\":8}}",
            "{\"name\":\"x\",\"shape\":[1],\"datatype\":\"BYTES\",\"parameters\":{\"binary_data_size\":8}}",
            "{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":{\"shared_memory_region\":\"r\","
                    + "\"shared_memory_byte_size\":1,\"shared_memory_offset\":0}}",
        };
        for (String input : inputs) {
            bodies.add(Wire.utf8(json(input)));
        }
        return bodies;
    }

    @Test
    void mutatedHttpBodiesAreTheClientsFaultAndLeaveNothingBehind() {
        long before = Wire.pooledBuffers();
        List<byte[]> bodies = bodies();
        byte[] tail = Wire.hex("04000000 61626364");
        int good = 0;
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(seed);
            byte[] valid = bodies.get(random.nextInt(bodies.size()));
            byte[] body = mutate(valid, bodies, random);
            boolean binary = random.nextBoolean();
            int header = random.nextInt(5) == 0 ? random.nextInt(200) : body.length;
            FakeExchange x =
                    new FakeExchange("POST", "/v2/models/identity/infer", binary ? Wire.join(body, tail) : body);
            if (binary) {
                x.header("Inference-Header-Content-Length", header);
            }
            Wire.send(codec, x);
            assertThat(x.status).as(() -> "seed " + random + ": " + x.text()).isIn(200, 400, 404, 501);
            good += x.status == 200 ? 1 : 0;
            if (seed % 1_000 == 999) {
                assertThat(Wire.pooledBuffers()).as("seed %d", seed).isEqualTo(before);
            }
        }
        assertThat(good).as("some mutants are still valid").isGreaterThan(CASES / 100);
    }

    @Test
    void mutatedGenerateRequestsAreTheClientsFaultAndLeaveNothingBehind() {
        List<TensorSpec> inputs = List.of(
                new TensorSpec("t", DataType.BYTES, Shape.of(-1, 1)),
                new TensorSpec("i", DataType.INT32, Shape.of(-1, 2, -1)),
                new TensorSpec("f", DataType.FP32, Shape.of(-1, -1)));
        engine.models.put(
                "g",
                new FakeEngine.Model(
                        1,
                        FakeEngine::identity,
                        new ModelMetadata(new ServableId("g", 1), "p", inputs, inputs, 8, Map.of())));
        List<byte[]> bodies = List.of(
                Wire.utf8("{\"id\":\"7\",\"t\":\"h\\u00e9\",\"i\":[1,2,3,4],\"stream\":true,\"none\":null}"),
                Wire.utf8("{\"f\":[[1.5,2],[-0,1e3]],\"parameters\":{\"a\":1.5,\"sequence_id\":7,\"t\":[\"x\"]}}"),
                Wire.utf8("{\"i\":[[5,6]],\"f\":2,\"priority\":1,\"timeout\":9}"));
        long before = Wire.pooledBuffers();
        int good = 0;
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(seed);
            byte[] body = mutate(bodies.get(random.nextInt(bodies.size())), bodies, random);
            boolean stream = random.nextBoolean();
            FakeExchange x =
                    new FakeExchange("POST", "/v2/models/g/" + (stream ? "generate_stream" : "generate"), body);
            Wire.send(codec, x);
            assertThat(x.status).as("seed %d: %s", seed, x.text()).isIn(200, 400);
            assertThat(x.ended).isEqualTo(stream && x.status == 200);
            good += x.status == 200 ? 1 : 0;
            if (seed % 1_000 == 999) {
                assertThat(Wire.pooledBuffers()).as("seed %d", seed).isEqualTo(before);
            }
        }
        assertThat(good).as("some mutants are still valid").isGreaterThan(CASES / 100);
    }

    @Test
    void mutatedControlRequestsAreTheClientsFault() {
        List<byte[]> bodies = List.of(
                Wire.utf8("{\"parameters\":{\"config\":\"{}\",\"file:1/m\":\"AAEC\",\"unload_dependents\":true}}"),
                Wire.utf8("{\"key\":\"/k\",\"offset\":1,\"byte_size\":2,\"ready\":true}"),
                Wire.utf8(
                        "{\"trace_level\":[\"OFF\"],\"trace_rate\":\"5\",\"log_frequency\":null,\"log_info\":false}"));
        List<String> paths = List.of(
                "/v2/repository/models/m/load",
                "/v2/repository/models/m/unload",
                "/v2/repository/index",
                "/v2/systemsharedmemory/region/r/register",
                "/v2/trace/setting",
                "/v2/models/identity/trace/setting",
                "/v2/logging");
        V2Codec other = new V2Codec(
                engine,
                engine,
                new FakeObservation(),
                Clock.system(),
                Runnable::run,
                V2Options.builder("1", 1 << 20)
                        .clientSharedMemory(List.of(java.util.regex.Pattern.compile("none")))
                        .build());
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(seed);
            byte[] body = mutate(bodies.get(random.nextInt(bodies.size())), bodies, random);
            FakeExchange x = new FakeExchange("POST", paths.get(random.nextInt(paths.size())), body);
            Wire.send(other, x);
            assertThat(x.status).as("seed %d: %s", seed, x.text()).isIn(200, 400, 403);
        }
    }

    private static List<byte[]> messages() {
        List<byte[]> messages = new ArrayList<>();
        ModelInferRequest.Builder raw = ModelInferRequest.newBuilder()
                .setModelName("identity")
                .setModelVersion("1")
                .setId("7")
                .putParameters(
                        "a", InferParameter.newBuilder().setDoubleParam(1).build())
                .putParameters(
                        "timeout", InferParameter.newBuilder().setInt64Param(1).build());
        for (String type : new String[] {"INT32", "FP16", "BYTES"}) {
            raw.addInputs(InferInputTensor.newBuilder()
                    .setName(type)
                    .setDatatype(type)
                    .addShape(1));
        }
        raw.addRawInputContents(ByteString.copyFrom(new byte[4]))
                .addRawInputContents(ByteString.copyFrom(new byte[2]))
                .addRawInputContents(ByteString.copyFrom(new byte[4]));
        messages.add(raw.build().toByteArray());
        ModelInferRequest.Builder typed = ModelInferRequest.newBuilder().setModelName("identity");
        typed.addInputs(InferInputTensor.newBuilder()
                .setName("i")
                .setDatatype("INT16")
                .addShape(3)
                .setContents(InferTensorContents.newBuilder()
                        .addIntContents(1)
                        .addIntContents(-2)
                        .addIntContents(300)));
        typed.addInputs(InferInputTensor.newBuilder()
                .setName("b")
                .setDatatype("BYTES")
                .addShape(2)
                .setContents(InferTensorContents.newBuilder()
                        .addBytesContents(ByteString.copyFromUtf8("abc"))
                        .addBytesContents(ByteString.EMPTY)));
        typed.addInputs(InferInputTensor.newBuilder()
                .setName("f")
                .setDatatype("FP64")
                .addShape(1)
                .addShape(2)
                .setContents(InferTensorContents.newBuilder().addFp64Contents(1).addFp64Contents(2)));
        messages.add(typed.build().toByteArray());
        return messages;
    }

    @Test
    void mutatedMessagesAreTheClientsFaultAndLeaveNothingBehind() {
        long before = Wire.pooledBuffers();
        List<byte[]> messages = messages();
        int good = 0;
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(~seed);
            byte[] message = mutate(messages.get(random.nextInt(messages.size())), messages, random);
            FakeCall call = new FakeCall(codec, "/inference.GRPCInferenceService/ModelInfer");
            call.start().message(message).halfClose();
            String what = "seed " + seed + ": " + call.text;
            assertThat(CLIENT_FAULTS).as(what).contains(call.code);
            good += call.code == ErrorCode.OK ? 1 : 0;
            FakeCall stream = new FakeCall(codec, "/inference.GRPCInferenceService/ModelStreamInfer");
            stream.start().message(message).halfClose();
            assertThat(stream.code).as(what).isEqualTo(ErrorCode.OK);
            assertThat(stream.sent).as(what).hasSize(1);
            if (seed % 1_000 == 999) {
                assertThat(Wire.pooledBuffers()).as("seed %d", seed).isEqualTo(before);
            }
        }
        assertThat(good).as("some mutants are still valid").isGreaterThan(CASES / 100);
    }
}
