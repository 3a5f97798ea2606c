// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RestSharedMemoryTest {
    @TempDir
    Path directory;

    private final FakeEngine engine = new FakeEngine();
    private V2Codec codec;
    private long buffersBefore;

    @BeforeEach
    void setUp() throws IOException {
        codec = codec(V2Options.builder("1", 1 << 20)
                .clientSharedMemory(List.of(Pattern.compile("my_.*")))
                .build());
        Files.write(directory.resolve("my_data"), new byte[64]);
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private V2Codec codec(V2Options options) {
        return new V2Codec(new CodecContext(
                engine, engine, Observability.NONE, Clock.system(), Runnable::run, options, directory));
    }

    private FakeExchange get(String path) {
        return Wire.send(codec, new FakeExchange("GET", "/v2/systemsharedmemory" + path, new byte[0]));
    }

    private FakeExchange post(String path, String body) {
        return Wire.send(codec, new FakeExchange("POST", "/v2/systemsharedmemory" + path, Wire.utf8(body)));
    }

    private void register() {
        FakeExchange x = post("/region/r/register", "{\"key\":\"/my_data\",\"offset\":8,\"byte_size\":40}");
        assertThat(x.text()).isEmpty();
        assertThat(x.status).isEqualTo(200);
    }

    private FakeExchange infer(String input, String output) {
        return Wire.send(
                codec,
                new FakeExchange(
                        "POST",
                        "/v2/models/identity/infer",
                        Wire.utf8("{\"inputs\":[{\"name\":\"x\",\"shape\":[4],\"datatype\":\"INT16\"," + input
                                + "}],\"outputs\":[{\"name\":\"x\"" + output + "}]}")));
    }

    private static String place(int offset, int size) {
        return "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_offset\":" + offset
                + ",\"shared_memory_byte_size\":" + size + "}";
    }

    @Test
    void regionsAreRegisteredListedAndForgotten() {
        register();
        assertThat(get("/status").text())
                .isEqualTo("[{\"name\":\"r\",\"key\":\"/my_data\",\"offset\":8,\"byte_size\":40}]");
        assertThat(get("/region/r/status").text()).isEqualTo(get("/status").text());
        FakeExchange unknown = get("/region/q/status");
        assertThat(unknown.status).isEqualTo(404);
        assertThat(unknown.text()).contains("Unable to find system shared memory region: 'q'");
        FakeExchange again = post("/region/r/register", "{\"key\":\"/my_data\",\"byte_size\":4}");
        assertThat(again.status).isEqualTo(409);
        assertThat(again.text()).contains("shared memory region 'r' already in manager");
        assertThat(post("/region/q/unregister", "").status).isEqualTo(200);
        assertThat(post("/region/r/unregister", "").status).isEqualTo(200);
        assertThat(get("/status").text()).isEqualTo("[]");
        register();
        assertThat(post("/unregister", "").status).isEqualTo(200);
        assertThat(get("/status").text()).isEqualTo("[]");
    }

    @Test
    void tensorsAreReadFromAndWrittenIntoTheRegion() throws IOException {
        byte[] data = new byte[64];
        data[10] = 5;
        Files.write(directory.resolve("my_data"), data);
        register();
        FakeExchange x = infer(place(2, 8), "," + place(20, 10));
        assertThat(x.text()).endsWith("\"outputs\":[{\"name\":\"x\",\"shape\":[4],\"datatype\":\"INT16\"}]}");
        assertThat(x.status).isEqualTo(200);
        assertThat(Files.readAllBytes(directory.resolve("my_data"))[28]).isEqualTo((byte) 5);
        Tensor input = engine.last.inputs().get(0);
        assertThat(input.offset()).as("a view").isEqualTo(2);
        assertThat(input.region().size()).isEqualTo(40);
    }

    @Test
    void textsAreCopiedSoThatTheirLengthsCannotChangeAfterTheyWereChecked() throws IOException {
        byte[] data = new byte[64];
        data[8] = 2;
        data[12] = 'h';
        data[13] = 'i';
        Files.write(directory.resolve("my_data"), data);
        register();
        FakeExchange x = Wire.send(
                codec,
                new FakeExchange(
                        "POST",
                        "/v2/models/identity/infer",
                        Wire.utf8("{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"BYTES\"," + place(0, 6)
                                + "}]}")));
        assertThat(x.text()).endsWith("\"data\":[\"hi\"]}]}");
        assertThat(engine.last.inputs().get(0).region().size()).isEqualTo(6);
    }

    @Test
    void aRegionThatIsForgottenWhileInUseStaysUntilTheRequestIsDone() throws IOException {
        register();
        engine.holding = true;
        FakeExchange x = infer(
                "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8}", "," + place(32, 8));
        InferenceRequest request = engine.held.get(0).request;
        post("/unregister", "");
        request.inputs().get(0).region().setInt(0, 77);
        engine.answer(engine.held.get(0));
        assertThat(x.status).isEqualTo(200);
        assertThat(Files.readAllBytes(directory.resolve("my_data"))[40]).isEqualTo((byte) 77);
    }

    @Test
    void aResultThatDoesNotFitIsRejectedAndNothingIsWritten() throws IOException {
        register();
        FakeExchange x = infer("\"data\":[1,2,3,4]", "," + place(0, 7));
        assertThat(x.status).isEqualTo(400);
        assertThat(x.text())
                .contains("shared memory size specified with the request for output 'x' (7 bytes) should be at least 8"
                        + " bytes to hold the results");
        assertThat(Files.readAllBytes(directory.resolve("my_data"))).containsOnly(0);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"parameters\":{\"shared_memory_region\":\"q\",\"shared_memory_byte_size\":8} | '' | 404 | Unable to"
                        + " find shared memory region: 'q'",
                "\"parameters\":{\"shared_memory_region\":\"r\"} | '' | 400 | without 'shared_memory_byte_size'",
                "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8,"
                        + "\"shared_memory_offset\":41} | '' | 400 | Invalid offset for shared memory region: 'r'",
                "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8,\"shared_memory_offset\":33}"
                        + " | '' | 400 | Invalid offset + byte size for shared memory region: 'r'",
                "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":6} | '' | 400 | input byte"
                        + " size mismatch for input 'x' for model 'identity'. Expected 8, got 6",
                "\"data\":[1,2,3,4],\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8} | ''"
                        + " | 400 | But set 'data' 'shared_memory_region'",
                "\"data\":[1,2,3,4] |"
                        + " ,\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8,\"binary_data\":true}"
                        + " | 400 | Output can't set both 'shared_memory_region' and 'binary_data'",
                "\"data\":[1,2,3,4] | ,\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8,"
                        + "\"classification\":1} | 400 | Output can't set both 'shared_memory_region' and"
                        + " 'classification'",
                "\"data\":[1,2,3,4] | ,\"parameters\":{\"shared_memory_region\":\"r\"} | 400 | output 'x' has"
                        + " 'shared_memory_region' without",
                "\"data\":[1,2,3] | ,\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":8} |"
                        + " 400 | input 'x'",
            })
    void wrongUsesAreRejected(String input, String output, int status, String reason) {
        register();
        FakeExchange x = infer(input, output);
        assertThat(x.text()).contains(reason);
        assertThat(x.status).isEqualTo(status);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"key\":\"/my_other\",\"byte_size\":4} | 400 | Unable to open shared memory region: '/my_other'",
                "{\"key\":\"/my_data\",\"byte_size\":65} | 400 | failed to register shared memory region: invalid args",
                "{\"key\":\"/my_data\",\"byte_size\":0} | 400 | failed to register shared memory region: invalid args",
                "{\"key\":\"/my_data\",\"byte_size\":4,\"offset\":-1} | 400 | invalid args",
                "{\"key\":\"/my_data\",\"byte_size\":4,\"offset\":9223372036854775807} | 400 | invalid args",
                "{\"key\":\"/my_data\"} | 400 | has no 'byte_size'",
                "'' | 400 | has no 'key'",
                "{\"key\":\"/your_data\",\"byte_size\":4} | 403 | not among the keys that this server allows",
                "{\"key\":\"../my_data\",\"byte_size\":4} | 400 | invalid shm key '../my_data'",
                "{\"key\":\"/triton_python_backend_shm_region_1\",\"byte_size\":4} | 400 | contains the reserved"
                        + " prefix",
            })
    void badRegistrationsAreRejected(String body, int status, String reason) {
        FakeExchange x = post("/region/r/register", body);
        assertThat(x.text()).contains(reason);
        assertThat(x.status).isEqualTo(status);
    }

    @Test
    void aLinkOutOfTheDirectoryIsNotFollowed() throws IOException {
        Path elsewhere = Files.write(directory.resolve("secret"), new byte[8]);
        Files.createSymbolicLink(directory.resolve("my_link"), elsewhere);
        assertThat(post("/region/r/register", "{\"key\":\"my_link\",\"byte_size\":4}")
                        .text())
                .contains("Unable to open shared memory region: 'my_link'");
    }

    @Test
    void nothingIsRegisteredUnlessTheOperatorAllowsIt() {
        codec = codec(V2Options.defaults("1", 1 << 20));
        for (String path : List.of("/region/r/register", "/region/r/unregister", "/unregister")) {
            FakeExchange x = post(path, "");
            assertThat(x.status).isEqualTo(501);
            assertThat(x.text())
                    .contains("Client shared memory is disabled. Start the server with '--allow-client-shm=true' to"
                            + " enable.");
        }
        assertThat(get("/status").text()).isEqualTo("[]");
    }

    @Test
    void serverMetadataListsSharedMemoryIfEnabled() {
        FakeExchange x = Wire.send(codec, new FakeExchange("GET", "/v2", new byte[0]));
        assertThat(x.text()).contains("\"model_configuration\",\"system_shared_memory\",\"binary_tensor_data\"");
    }

    @Test
    void cudaSharedMemoryIsEmptyAndNothingCanBeAdded() {
        String cuda = "/v2/cudasharedmemory";
        assertThat(Wire.send(codec, new FakeExchange("GET", cuda + "/status", new byte[0]))
                        .text())
                .isEqualTo("[]");
        FakeExchange x = Wire.send(
                codec,
                new FakeExchange(
                        "POST",
                        cuda + "/region/r/register",
                        Wire.utf8("{\"raw_handle\":{\"b64\":\"\"},\"device_id\":0,\"byte_size\":4}")));
        assertThat(x.status).isEqualTo(501);
        assertThat(x.text()).contains("GPUs not supported");
        assertThat(Wire.send(codec, new FakeExchange("POST", cuda + "/unregister", new byte[0])).status)
                .isEqualTo(200);
        assertThat(Wire.send(codec, new FakeExchange("GET", cuda + "/region/r/status", new byte[0])).status)
                .isEqualTo(404);
    }
}
