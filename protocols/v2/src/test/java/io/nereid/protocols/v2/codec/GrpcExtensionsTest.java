// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.access.Caller;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import io.nereid.protocols.v2.FakeCall;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeObservation;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.LogSettingsRequest;
import io.nereid.protocols.v2.proto.OpenInference.LogSettingsResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferRequestedOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelStatistics;
import io.nereid.protocols.v2.proto.OpenInference.ModelStatisticsRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelStatisticsResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.TraceSettingRequest;
import io.nereid.protocols.v2.proto.OpenInference.TraceSettingResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GrpcExtensionsTest {
    private static final String SERVICE = "/inference.GRPCInferenceService/";

    @TempDir
    Path directory;

    private final FakeEngine engine = new FakeEngine();
    private final FakeObservation observation = new FakeObservation();
    private V2Codec codec;
    private long buffersBefore;

    @BeforeEach
    void setUp() throws IOException {
        codec = codec(V2Options.builder("1", 1 << 20)
                .clientSharedMemory(List.of(Pattern.compile("my_.*")))
                .forwardGrpcHeaders(Pattern.compile("my-.*"))
                .build());
        Files.write(directory.resolve("my_data"), new byte[64]);
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private V2Codec codec(V2Options options) {
        return new V2Codec(
                new CodecContext(engine, engine, observation, Clock.system(), Runnable::run, options, directory));
    }

    private FakeCall call(String method, Message request) {
        FakeCall call = new FakeCall(codec, SERVICE + method);
        call.start().message(request);
        return call;
    }

    private void register() {
        FakeCall call = call(
                "SystemSharedMemoryRegister",
                SystemSharedMemoryRegisterRequest.newBuilder()
                        .setName("r")
                        .setKey("/my_data")
                        .setOffset(8)
                        .setByteSize(40)
                        .build());
        assertThat(call.code).as(call.text).isEqualTo(ErrorCode.OK);
    }

    @Test
    void statisticsHaveEveryFigure() throws Exception {
        Total t = new Total(3, 70);
        observation.reports = List.of(new ModelStatisticsSnapshot(
                "m",
                2,
                17,
                5,
                4,
                t,
                t,
                t,
                t,
                t,
                new Total(9, 90),
                t,
                t,
                List.of(new ModelStatisticsSnapshot.Batch(8, t, t, t)),
                Map.of("0", new ModelStatisticsSnapshot.Response(t, t, t, t, t, new Total(1, 2))),
                List.of(new ModelStatisticsSnapshot.Memory("CPU", 0, 1000))));
        FakeCall call = call(
                "ModelStatistics",
                ModelStatisticsRequest.newBuilder().setName("m").setVersion("2").build());
        ModelStatistics stats =
                ModelStatisticsResponse.parseFrom(call.sent.get(0)).getModelStats(0);
        assertThat(stats.getName()).isEqualTo("m");
        assertThat(stats.getVersion()).isEqualTo("2");
        assertThat(stats.getLastInference()).isEqualTo(17);
        assertThat(stats.getInferenceCount()).isEqualTo(5);
        assertThat(stats.getExecutionCount()).isEqualTo(4);
        assertThat(stats.getInferenceStats().getComputeOutput().getNs()).isEqualTo(90);
        assertThat(stats.getInferenceStats().getSuccess().getCount()).isEqualTo(3);
        assertThat(stats.getBatchStats(0).getBatchSize()).isEqualTo(8);
        assertThat(stats.getResponseStatsOrThrow("0").getCancel().getNs()).isEqualTo(2);
        assertThat(stats.getMemoryUsage(0).getByteSize()).isEqualTo(1000);
    }

    @Test
    void traceSettingsAreShownAndChanged() throws Exception {
        FakeCall call = call(
                "TraceSetting",
                TraceSettingRequest.newBuilder()
                        .putSettings(
                                "trace_level",
                                TraceSettingRequest.SettingValue.newBuilder()
                                        .addValue("TIMESTAMPS")
                                        .addValue("TENSORS")
                                        .build())
                        .build());
        TraceSettingResponse response = TraceSettingResponse.parseFrom(call.sent.get(0));
        assertThat(response.getSettingsOrThrow("trace_level").getValueList()).containsExactly("TIMESTAMPS", "TENSORS");
        assertThat(response.getSettingsOrThrow("trace_rate").getValueList()).containsExactly("1000");
        assertThat(call(
                                "TraceSetting",
                                TraceSettingRequest.newBuilder()
                                        .setModelName("nobody")
                                        .build())
                        .code)
                .isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void logSettingsHaveTheirTypes() throws Exception {
        FakeCall call = call(
                "LogSettings",
                LogSettingsRequest.newBuilder()
                        .putSettings(
                                "log_verbose_level",
                                LogSettingsRequest.SettingValue.newBuilder()
                                        .setUint32Param(2)
                                        .build())
                        .build());
        LogSettingsResponse response = LogSettingsResponse.parseFrom(call.sent.get(0));
        assertThat(response.getSettingsOrThrow("log_verbose_level").getUint32Param())
                .isEqualTo(2);
        assertThat(response.getSettingsOrThrow("log_info").getBoolParam()).isTrue();
        assertThat(response.getSettingsOrThrow("log_format").getStringParam()).isEqualTo("default");
    }

    @Test
    void aCallThatChangesSettingsNeedsMoreThanOneThatReadsThem() {
        FakeCall read = new FakeCall(codec, SERVICE + "LogSettings");
        read.caller = Caller.ANONYMOUS;
        read.start().message(LogSettingsRequest.getDefaultInstance());
        assertThat(read.code).isEqualTo(ErrorCode.OK);
        FakeCall change = new FakeCall(codec, SERVICE + "LogSettings");
        change.caller = Caller.ANONYMOUS;
        change.start()
                .message(LogSettingsRequest.newBuilder()
                        .putSettings(
                                "log_verbose_level",
                                LogSettingsRequest.SettingValue.newBuilder()
                                        .setUint32Param(2)
                                        .build())
                        .build());
        assertThat(change.code).isEqualTo(ErrorCode.PERMISSION_DENIED);
        FakeCall trace = new FakeCall(codec, SERVICE + "TraceSetting");
        trace.caller = Caller.ANONYMOUS;
        trace.start()
                .message(TraceSettingRequest.newBuilder()
                        .putSettings(
                                "trace_rate",
                                TraceSettingRequest.SettingValue.newBuilder()
                                        .addValue("1")
                                        .build())
                        .build());
        assertThat(trace.code).isEqualTo(ErrorCode.PERMISSION_DENIED);
    }

    @Test
    void regionsAreRegisteredListedAndForgotten() throws Exception {
        register();
        FakeCall status = call("SystemSharedMemoryStatus", SystemSharedMemoryStatusRequest.getDefaultInstance());
        SystemSharedMemoryStatusResponse.RegionStatus region =
                SystemSharedMemoryStatusResponse.parseFrom(status.sent.get(0)).getRegionsOrThrow("r");
        assertThat(region.getKey()).isEqualTo("/my_data");
        assertThat(region.getOffset()).isEqualTo(8);
        assertThat(region.getByteSize()).isEqualTo(40);
        assertThat(call("SystemSharedMemoryUnregister", SystemSharedMemoryUnregisterRequest.getDefaultInstance()).code)
                .isEqualTo(ErrorCode.OK);
        FakeCall gone = call(
                "SystemSharedMemoryStatus",
                SystemSharedMemoryStatusRequest.newBuilder().setName("r").build());
        assertThat(gone.text).isEqualTo("Unable to find system shared memory region: 'r'");
    }

    private static InferParameter text(String value) {
        return InferParameter.newBuilder().setStringParam(value).build();
    }

    private static InferParameter number(long value) {
        return InferParameter.newBuilder().setInt64Param(value).build();
    }

    private static ModelInferRequest shared(long outputRoom) {
        return ModelInferRequest.newBuilder()
                .setModelName("identity")
                .addInputs(InferInputTensor.newBuilder()
                        .setName("x")
                        .setDatatype("INT16")
                        .addShape(4)
                        .putParameters("shared_memory_region", text("r"))
                        .putParameters("shared_memory_offset", number(2))
                        .putParameters("shared_memory_byte_size", number(8)))
                .addInputs(InferInputTensor.newBuilder()
                        .setName("y")
                        .setDatatype("UINT8")
                        .addShape(3))
                .addRawInputContents(ByteString.copyFromUtf8("abc"))
                .addOutputs(InferRequestedOutputTensor.newBuilder()
                        .setName("x")
                        .putParameters("shared_memory_region", text("r"))
                        .putParameters("shared_memory_offset", number(20))
                        .putParameters("shared_memory_byte_size", number(outputRoom)))
                .addOutputs(InferRequestedOutputTensor.newBuilder().setName("y"))
                .build();
    }

    @Test
    void tensorsComeFromAndGoToSharedMemory() throws Exception {
        byte[] bytes = new byte[64];
        for (int i = 0; i < 64; i++) {
            bytes[i] = (byte) i;
        }
        Files.write(directory.resolve("my_data"), bytes);
        register();
        FakeCall call = call("ModelInfer", shared(8));
        assertThat(call.code).as(call.text).isEqualTo(ErrorCode.OK);
        ModelInferResponse response = ModelInferResponse.parseFrom(call.sent.get(0));
        assertThat(response.getRawOutputContentsCount()).isEqualTo(2);
        assertThat(response.getRawOutputContents(0).size())
                .as("it lies elsewhere")
                .isZero();
        assertThat(response.getRawOutputContents(1).toStringUtf8()).isEqualTo("abc");
        assertThat(response.getOutputs(0)
                        .getParametersOrThrow("shared_memory_region")
                        .getStringParam())
                .isEqualTo("r");
        assertThat(response.getOutputs(0)
                        .getParametersOrThrow("shared_memory_byte_size")
                        .getInt64Param())
                .isEqualTo(8);
        assertThat(Arrays.copyOfRange(Files.readAllBytes(directory.resolve("my_data")), 28, 36))
                .isEqualTo(new byte[] {10, 11, 12, 13, 14, 15, 16, 17});
        FakeCall small = call("ModelInfer", shared(7));
        assertThat(small.text)
                .isEqualTo("shared memory size specified with the request for output 'x' (7 bytes) should be at least"
                        + " 8 bytes to hold the results");
    }

    @Test
    void cudaMemoryIsNotThere() {
        assertThat(call("CudaSharedMemoryStatus", CudaSharedMemoryStatusRequest.getDefaultInstance()).code)
                .isEqualTo(ErrorCode.OK);
        FakeCall call = call(
                "CudaSharedMemoryRegister",
                CudaSharedMemoryRegisterRequest.newBuilder().setName("g").build());
        assertThat(call.code).isEqualTo(ErrorCode.UNIMPLEMENTED);
        assertThat(call.text).contains("'g'");
    }

    @Test
    void metadataIsForwardedAndTheRequestTraced() {
        FakeCall call = new FakeCall(codec, SERVICE + "ModelInfer");
        call.metadata.put("my-tenant", "7");
        call.metadata.put("other", "8");
        call.metadata.put("traceparent", "00-x");
        call.start()
                .message(ModelInferRequest.newBuilder()
                        .setModelName("identity")
                        .putParameters("priority", number(2))
                        .putParameters("sequence_id", text("s"))
                        .putParameters(
                                "sequence_start",
                                InferParameter.newBuilder().setBoolParam(true).build())
                        .addInputs(InferInputTensor.newBuilder()
                                .setName("x")
                                .setDatatype("UINT8")
                                .addShape(1))
                        .addRawInputContents(ByteString.copyFromUtf8("a"))
                        .build());
        assertThat(engine.last.parameters()).isEqualTo(Map.of("my-tenant", "7"));
        assertThat(engine.last.options().priority()).isEqualTo(2);
        assertThat(engine.last.options().sequence().id()).isEqualTo("s");
        assertThat(engine.last.options().sequence().start()).isTrue();
        FakeObservation.Trace trace = observation.traces.get(0);
        assertThat(trace.model).isEqualTo("identity");
        assertThat(trace.traceparent).isEqualTo("00-x");
        assertThat(trace.events)
                .containsExactly("GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END", "end");
    }
}
