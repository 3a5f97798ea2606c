// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.memory;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceTransfers.Copied;
import io.nereid.device.DeviceTransfers.Direction;
import io.nereid.device.Devices;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeCall;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferRequestedOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelStreamInferResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(30)
class CudaSharedMemoryTest {
    private static final String SERVICE = "/inference.GRPCInferenceService/";

    @TempDir
    Path directory;

    private final FakeGpus gpus = new FakeGpus();
    private final FakeEngine engine = new FakeEngine();
    private Devices devices;
    private V2Codec codec;
    private long buffersBefore;

    @BeforeEach
    void setUp() throws IOException {
        devices = new Devices(gpus, DeviceLimits.DEFAULT);
        codec = codec(V2Options.builder("1", 1 << 20)
                .clientSharedMemory(List.of(Pattern.compile("my_.*")))
                .build());
        Files.write(directory.resolve("my_data"), new byte[64]);
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        gpus.copying.countDown();
        settle();
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
        devices.close();
    }

    private V2Codec codec(V2Options options) {
        return new V2Codec(new CodecContext(
                engine, engine, Observability.NONE, Clock.system(), Runnable::run, options, directory, devices));
    }

    /** Waits until the thread of the first GPU has nothing to do, also what its tasks have added. */
    private void settle() {
        for (int i = 0; i < 3; i++) {
            CompletableFuture.runAsync(() -> {}, devices.transfers().thread(0)).join();
        }
    }

    private FakeExchange send(String method, String path, String body) {
        FakeExchange x = Wire.send(codec, new FakeExchange(method, "/v2" + path, Wire.utf8(body)));
        settle();
        return x;
    }

    private FakeExchange post(String path, String body) {
        return send("POST", "/cudasharedmemory" + path, body);
    }

    private FakeExchange get(String path) {
        return send("GET", "/cudasharedmemory" + path, "");
    }

    private static byte[] handle(int length) {
        byte[] handle = new byte[length];
        Arrays.fill(handle, (byte) 'A');
        return handle;
    }

    private static String registration(String handle, int device, long bytes) {
        return "{\"raw_handle\":{\"b64\":\"" + handle + "\"},\"device_id\":" + device + ",\"byte_size\":" + bytes + "}";
    }

    private static String registration(int device, long bytes) {
        return registration(Base64.getEncoder().encodeToString(handle(64)), device, bytes);
    }

    private void register() {
        FakeExchange x = post("/region/g/register", registration(0, 40));
        assertThat(x.text()).isEmpty();
        assertThat(x.status).isEqualTo(200);
    }

    private static String place(String region, int offset, int size) {
        return "\"parameters\":{\"shared_memory_region\":\"" + region + "\",\"shared_memory_offset\":" + offset
                + ",\"shared_memory_byte_size\":" + size + "}";
    }

    private static String inference(String type, int elements, String input, String output) {
        return "{\"inputs\":[{\"name\":\"x\",\"shape\":[" + elements + "],\"datatype\":\"" + type + "\"," + input
                + "}],\"outputs\":[{\"name\":\"x\"" + output + "}]}";
    }

    private FakeExchange infer(String body) {
        return send("POST", "/models/identity/infer", body);
    }

    private FakeCall call(String method, Message request) {
        FakeCall call =
                new FakeCall(codec, SERVICE + method).start().message(request).halfClose();
        settle();
        return call;
    }

    @Test
    void regionsAreRegisteredListedAndForgottenOverRest() {
        register();
        assertThat(get("/status").text()).isEqualTo("[{\"name\":\"g\",\"device_id\":0,\"byte_size\":40}]");
        assertThat(get("/region/g/status").text()).isEqualTo(get("/status").text());
        FakeExchange unknown = get("/region/q/status");
        assertThat(unknown.status).isEqualTo(404);
        assertThat(unknown.text()).contains("Unable to find cuda shared memory region: 'q'");
        FakeExchange again = post("/region/g/register", registration(0, 4));
        assertThat(again.status).isEqualTo(409);
        assertThat(again.text()).contains("shared memory region 'g' already in manager");
        assertThat(post("/region/q/unregister", "").status).isEqualTo(200);
        assertThat(post("/region/g/unregister", "").status).isEqualTo(200);
        assertThat(get("/status").text()).isEqualTo("[]");
        String lines = Base64.getEncoder().encodeToString(handle(64)).replaceFirst(".{72}", "$0\\\\n") + "\\n";
        assertThat(post("/region/g/register", registration(lines, 0, 40)).status)
                .as("as Triton's C++ client encodes it: " + lines)
                .isEqualTo(200);
        assertThat(post("/unregister", "").status).isEqualTo(200);
        assertThat(get("/status").text()).isEqualTo("[]");
        assertThat(gpus.calls).containsExactly("open device 0", "close device 0", "open device 0", "close device 0");
        assertThat(gpus.threads)
                .as("never that of the caller")
                .isNotEmpty()
                .allMatch(t -> t.startsWith("device-copy-0"));
    }

    @Test
    void regionsAreRegisteredListedAndForgottenOverGrpc() throws Exception {
        CudaSharedMemoryRegisterRequest request = CudaSharedMemoryRegisterRequest.newBuilder()
                .setName("g")
                .setRawHandle(ByteString.copyFrom(handle(64)))
                .setByteSize(40)
                .build();
        assertThat(call("CudaSharedMemoryRegister", request).code).isEqualTo(ErrorCode.OK);
        assertThat(call("CudaSharedMemoryRegister", request).text)
                .isEqualTo("shared memory region 'g' already in manager");
        FakeCall status = call("CudaSharedMemoryStatus", CudaSharedMemoryStatusRequest.getDefaultInstance());
        CudaSharedMemoryStatusResponse.RegionStatus region =
                CudaSharedMemoryStatusResponse.parseFrom(status.sent.get(0)).getRegionsOrThrow("g");
        assertThat(region.getName() + region.getDeviceId() + region.getByteSize())
                .isEqualTo("g040");
        FakeCall other = call(
                "CudaSharedMemoryRegister",
                request.toBuilder()
                        .setName("h")
                        .setRawHandle(ByteString.copyFrom(handle(63)))
                        .build());
        assertThat(other.code).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(other.text).contains("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
        assertThat(call("CudaSharedMemoryUnregister", CudaSharedMemoryUnregisterRequest.getDefaultInstance()).code)
                .isEqualTo(ErrorCode.OK);
        assertThat(call(
                                "CudaSharedMemoryStatus",
                                CudaSharedMemoryStatusRequest.newBuilder()
                                        .setName("g")
                                        .build())
                        .text)
                .isEqualTo("Unable to find cuda shared memory region: 'g'");
    }

    @Test
    void bothKindsOfMemoryShareOneNameSpace() {
        register();
        String body = "{\"key\":\"/my_data\",\"byte_size\":40}";
        assertThat(send("POST", "/systemsharedmemory/region/g/register", body).text())
                .contains("shared memory region 'g' already in manager");
        assertThat(send("GET", "/systemsharedmemory/region/g/status", "").text())
                .contains("The region named 'g' is registered as CUDA shared memory, not system shared memory");
        assertThat(send("POST", "/systemsharedmemory/unregister", "").status).isEqualTo(200);
        assertThat(get("/status").text()).contains("\"g\"");
        assertThat(send("POST", "/systemsharedmemory/region/s/register", body).status)
                .isEqualTo(200);
        assertThat(get("/region/s/status").text())
                .contains("The region named 's' is registered as system shared memory, not CUDA shared memory");
        assertThat(post("/region/s/register", registration(0, 4)).status).isEqualTo(409);
        assertThat(post("/unregister", "").status).isEqualTo(200);
        assertThat(send("GET", "/systemsharedmemory/status", "").text()).contains("\"s\"");
        assertThat(send("POST", "/systemsharedmemory/unregister", "").status).isEqualTo(200);
    }

    @Test
    void tensorsAreCopiedFromAndToTheGpu() {
        register();
        gpus.memory.setShortLE(4, 77);
        FakeExchange x = infer(inference("INT16", 4, place("g", 2, 8), "," + place("g", 20, 10)));
        assertThat(x.text()).endsWith("\"outputs\":[{\"name\":\"x\",\"shape\":[4],\"datatype\":\"INT16\"}]}");
        assertThat(x.status).isEqualTo(200);
        assertThat(gpus.memory.getShortLE(22)).isEqualTo((short) 77);
        gpus.memory.setIntLE(0, 2).setByte(4, 'h').setByte(5, 'i');
        x = infer(inference("BYTES", 1, place("g", 0, 6), ""));
        assertThat(x.text()).endsWith("\"data\":[\"hi\"]}]}");
        x = infer(inference("INT16", 0, place("g", 0, 0), ""));
        assertThat(x.text()).endsWith("\"data\":[]}]}");
        assertThat(devices.transfers().copied(0, Direction.FROM_DEVICE)).isEqualTo(new Copied(2, 14));
        assertThat(devices.transfers().copied(0, Direction.TO_DEVICE)).isEqualTo(new Copied(1, 8));
        assertThat(gpus.threads).allMatch(t -> t.startsWith("device-copy-0"));
    }

    private static ModelInferRequest message(String id, int offset, int outputBytes) {
        return ModelInferRequest.newBuilder()
                .setModelName("identity")
                .setId(id)
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype("INT16")
                        .addShape(4)
                        .putParameters("shared_memory_region", text("g"))
                        .putParameters("shared_memory_offset", number(offset))
                        .putParameters("shared_memory_byte_size", number(8)))
                .addOutputs(InferRequestedOutputTensor.newBuilder()
                        .setName("x")
                        .putParameters("shared_memory_region", text("g"))
                        .putParameters("shared_memory_offset", number(20))
                        .putParameters("shared_memory_byte_size", number(outputBytes)))
                .build();
    }

    private static InferParameter text(String value) {
        return InferParameter.newBuilder().setStringParam(value).build();
    }

    private static InferParameter number(long value) {
        return InferParameter.newBuilder().setInt64Param(value).build();
    }

    @Test
    void tensorsAreCopiedFromAndToTheGpuOverGrpc() throws Exception {
        register();
        gpus.memory.setShortLE(2, 77);
        FakeCall call = call("ModelInfer", message("", 2, 8));
        assertThat(call.code).as(call.text).isEqualTo(ErrorCode.OK);
        ModelInferResponse response = ModelInferResponse.parseFrom(call.sent.get(0));
        assertThat(response.getRawOutputContents(0).isEmpty()).isTrue();
        assertThat(response.getOutputs(0)
                        .getParametersOrThrow("shared_memory_region")
                        .getStringParam())
                .isEqualTo("g");
        assertThat(gpus.memory.getShortLE(20)).isEqualTo((short) 77);
        assertThat(call("ModelInfer", message("", 2, 7)).text)
                .isEqualTo("shared memory size specified with the request for output 'x' (7 bytes) should be at least"
                        + " 8 bytes to hold the results");
        assertThat(call("ModelInfer", message("", 33, 8)).text)
                .isEqualTo("Invalid offset + byte size for shared memory region: 'g'");
    }

    @Test
    void aStreamKeepsTheOrderOfItsRequestsWhileTheFirstIsCopied() throws Exception {
        register();
        gpus.copying = new CountDownLatch(1);
        FakeCall call = new FakeCall(codec, SERVICE + "ModelStreamInfer").start();
        call.message(message("first", 2, 8));
        call.message(ModelInferRequest.newBuilder()
                .setModelName("identity")
                .setId("second")
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype("UINT8")
                        .addShape(1))
                .addRawInputContents(ByteString.copyFromUtf8("a"))
                .build());
        assertThat(engine.last)
                .as("no model runs before the copy, nor does the caller wait for it")
                .isNull();
        gpus.copying.countDown();
        settle();
        assertThat(call.sent).hasSize(2);
        assertThat(ModelStreamInferResponse.parseFrom(call.sent.get(0))
                        .getInferResponse()
                        .getId())
                .isEqualTo("first");
        assertThat(engine.last.id()).isEqualTo("second");
        call.message(message("third", 2, 7));
        settle();
        assertThat(ModelStreamInferResponse.parseFrom(call.sent.get(2)).getErrorMessage())
                .contains("should be at least 8 bytes");
        call.halfClose();
        assertThat(call.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void aRegionThatIsForgottenWhileInUseStaysUntilTheRequestIsDone() {
        register();
        engine.holding = true;
        gpus.memory.setShortLE(0, 77);
        FakeExchange x = infer(inference("INT16", 4, place("g", 0, 8), "," + place("g", 32, 8)));
        assertThat(post("/unregister", "").status).isEqualTo(200);
        assertThat(infer(inference("INT16", 4, place("g", 0, 8), "")).status).isEqualTo(404);
        assertThat(gpus.calls).doesNotContain("close device 0");
        engine.answer(engine.held.get(0));
        settle();
        assertThat(x.status).isEqualTo(200);
        assertThat(gpus.memory.getShortLE(32)).isEqualTo((short) 77);
        assertThat(gpus.calls).endsWith("copy host to device 0 8", "close device 0");
    }

    @Test
    void aLostGpuIsSaidAndTheServerGoesOn() {
        register();
        gpus.lost = true;
        FakeExchange x = infer(inference("INT16", 4, place("g", 0, 8), ""));
        assertThat(x.status).isEqualTo(503);
        assertThat(x.text()).contains("device 0 is lost: copy device 0 to host 8: it is gone");
        gpus.lost = false;
        x = infer(inference("INT16", 4, "\"data\":[1,2,3,4]", "," + place("g", 0, 8)));
        assertThat(x.status).isEqualTo(503);
        assertThat(post("/region/h/register", registration(0, 4)).status).isEqualTo(503);
        assertThat(get("/status").text()).contains("\"g\"");
        assertThat(post("/unregister", "").status).isEqualTo(200);
        assertThat(infer(inference("INT16", 4, "\"data\":[1,2,3,4]", "")).status)
                .isEqualTo(200);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'' | 400 | Shared memory register request has no 'raw_handle' field",
                "{\"raw_handle\":{\"b64\":\"!\"},\"device_id\":0,\"byte_size\":4} | 400 | it is not base64",
                "{\"raw_handle\":{\"b64\":\"AAAA\"},\"device_id\":0,\"byte_size\":4} | 400 | it has 3 bytes instead of 64",
                "{\"raw_handle\":{},\"device_id\":0,\"byte_size\":4} | 400 | no 'raw_handle'",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"byte_size\":4} | 400 | no 'device_id'",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"device_id\":0} | 400 | no 'byte_size'",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"device_id\":3,\"byte_size\":4} | 400 | invalid args (there is no"
                        + " GPU with device_id 3; this server has 3, from 0)",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"device_id\":-2,\"byte_size\":4} | 400 | no GPU with device_id -2",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"device_id\":1,\"byte_size\":4} | 400 | failed to register shared"
                        + " memory region: invalid args (cannot open shared memory of device 1: open: refused)",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"device_id\":2,\"byte_size\":4} | 400 | device 2 is not used",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"device_id\":0,\"byte_size\":65} | 400 | failed to register shared"
                        + " memory region 'g': invalid args (its byte_size is 65, and the memory of the handle has 64)",
                "{\"raw_handle\":{\"b64\":\"HANDLE\"},\"device_id\":0,\"byte_size\":0} | 400 | its byte_size is 0",
            })
    void badRegistrationsAreRejected(String body, int status, String reason) {
        FakeExchange x = post(
                "/region/g/register", body.replace("HANDLE", Base64.getEncoder().encodeToString(handle(64))));
        for (int i = 1; i < 3; i++) {
            CompletableFuture.runAsync(() -> {}, devices.transfers().thread(i)).join();
        }
        assertThat(x.text()).contains(reason);
        assertThat(x.status).isEqualTo(status);
        assertThat(get("/status").text()).isEqualTo("[]");
        register();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "q | 0 | 8 | INT16 | 404 | Unable to find shared memory region: 'q'",
                "g | 41 | 0 | INT16 | 400 | Invalid offset for shared memory region: 'g'",
                "g | 33 | 8 | INT16 | 400 | Invalid offset + byte size for shared memory region: 'g'",
                "g | 0 | 6 | INT16 | 400 | input byte size mismatch for input 'x' for model 'identity'. Expected 8, got 6",
                "g | 0 | 8 | BYTES | 400 | unexpected number of string elements 2 for inference input 'x'",
                "g | 0 | 0 | BYTES | 400 | unexpected number of string elements 0 for inference input 'x'",
            })
    void wrongUsesAreRejected(String region, int offset, int size, String type, int status, String reason) {
        register();
        FakeExchange x = infer(inference(type, 4, place(region, offset, size), ""));
        assertThat(x.text()).contains(reason);
        assertThat(x.status).isEqualTo(status);
    }

    @Test
    void itIsListedAndOpenOnlyIfTheOperatorAllowsSharedMemory() {
        FakeExchange x = send("GET", "", "");
        assertThat(x.text()).contains("\"system_shared_memory\",\"cuda_shared_memory\",\"binary_tensor_data\"");
        codec = codec(V2Options.defaults("1", 1 << 20));
        assertThat(send("GET", "", "").text()).doesNotContain("shared_memory");
        x = post("/region/g/register", registration(0, 4));
        assertThat(x.status).isEqualTo(501);
        assertThat(x.text()).contains("Client shared memory is disabled.");
        assertThat(gpus.calls).isEmpty();
    }
}
