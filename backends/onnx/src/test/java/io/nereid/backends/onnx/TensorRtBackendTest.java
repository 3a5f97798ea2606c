// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.engine.EngineGraph;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.StringInterner;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.OptimizationPolicy;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Plans of TensorRT as far as a machine without a GPU shows them: the ONNX model around a plan, and what is refused. */
class TensorRtBackendTest {
    private static final Backend BACKEND = new TensorRtBackend();

    /** The beginning of a plan of TensorRT 10.9.0.34, as trtexec reads it. */
    private static final byte[] PLAN = plan(10, 9, 0, 34);

    @TempDir
    Path root;

    private static byte[] plan(int... version) {
        byte[] bytes = new byte[64];
        System.arraycopy(new byte[] {'f', 't', 'r', 't'}, 0, bytes, 0, 4);
        for (int i = 0; i < version.length; i++) {
            bytes[24 + i] = (byte) version[i];
        }
        return bytes;
    }

    private static ModelConfig config(String name, int maxBatchSize, List<TensorSpec> in, List<TensorSpec> out) {
        return ModelConfig.builder(name)
                .platform("tensorrt_plan")
                .maxBatchSize(maxBatchSize)
                .inputs(in)
                .outputs(out)
                .instanceGroups(List.of(InstanceGroup.cpu(name, 1).placed(InstanceGroup.Kind.GPU, 1, List.of(0))))
                .build();
    }

    private static ModelConfig config() {
        return config(
                "m",
                8,
                List.of(new TensorSpec("IN", DataType.FP32, Shape.of(3, -1))),
                List.of(new TensorSpec("OUT", DataType.FP16, Shape.of(10))));
    }

    private ModelLocation source(String file, byte[] bytes) throws IOException {
        Path version = Files.createDirectories(root.resolve("m").resolve("1"));
        Files.write(version.resolve(file), bytes);
        return new ModelLocation(new ServableId("m", 1), root.resolve("m"), version);
    }

    private ServingException rejected(ModelLocation source, ModelConfig config, Map<String, String> settings) {
        BackendContext context = new BackendContext(1, root.resolve("scratch"), settings);
        return Objects.requireNonNull(catchThrowableOfType(
                ServingException.class,
                () -> BACKEND.load(source, config, context).close()));
    }

    private static ServingException rejected(ModelConfig config) {
        return Objects.requireNonNull(catchThrowableOfType(ServingException.class, () -> BACKEND.check(config)));
    }

    /** The fields of a message as lines, with the messages inside written as {@code number{…}}. */
    private static String text(ByteBuffer message, List<String> path, List<String> messages) {
        ProtobufReader reader = new ProtobufReader();
        reader.reset(message);
        List<String> fields = new ArrayList<>();
        while (reader.hasMore()) {
            int tag = reader.readTag();
            int number = tag >>> 3;
            if ((tag & 7) == ProtobufReader.VARINT) {
                fields.add(number + "=" + reader.readVarint());
                continue;
            }
            List<String> inside = new ArrayList<>(path);
            inside.add(Integer.toString(number));
            if (messages.contains(String.join(".", inside))) {
                int length = reader.readLength();
                ByteBuffer body = message.slice(reader.position(), length);
                reader.skip(length);
                fields.add(number + "{" + text(body, inside, messages) + "}");
            } else {
                fields.add(number + "=" + reader.readText(new StringInterner()));
            }
        }
        return String.join(" ", fields);
    }

    private static String graph(ModelConfig config) {
        return text(
                ByteBuffer.wrap(EngineGraph.of(config, "model.plan")),
                List.of(),
                List.of(("8 7 7.1 7.1.5 7.11 7.11.2 7.11.2.1 7.11.2.1.2 7.11.2.1.2.1 7.12 7.12.2 7.12.2.1 7.12.2.1.2"
                                + " 7.12.2.1.2.1")
                        .split(" ", -1)));
    }

    @Test
    void aPlanIsTheEngineOfAnOnnxModelWithOneNode() {
        assertThat(graph(config()))
                .contains("8{1= 2=17} 8{1=com.microsoft 2=1}")
                .contains("7{1{1=IN 2=OUT 3=engine 4=EPContext"
                        + " 5{1=main_context 3=1 20=2}"
                        + " 5{1=embed_mode 3=0 20=2}"
                        + " 5{1=ep_cache_context 4=model.plan 20=3}"
                        + " 5{1=source 4=TensorrtExecutionProvider 20=3}"
                        + " 7=com.microsoft}")
                .contains("11{1=IN 2{1{1=1 2{1{2=batch} 1{1=3} 1{2=IN_2}}}}}")
                .contains("12{1=OUT 2{1{1=10 2{1{2=batch} 1{1=10}}}}}");
        assertThat(graph(config().toBuilder().maxBatchSize(0).build()))
                .contains("11{1=IN 2{1{1=1 2{1{1=3} 1{2=IN_1}}}}}");
    }

    /** It is a valid model: ONNX Runtime parses it, and lacks only the execution provider that has its operator. */
    @ParameterizedTest
    @EnumSource(names = {"BOOL", "UINT8", "INT8", "INT32", "INT64", "FP16", "BF16", "FP32"})
    void onnxRuntimeWithoutTensorRtLacksTheOperatorOnly(DataType type) throws Exception {
        ModelConfig config = config(
                "m",
                4,
                List.of(
                        new TensorSpec("IN", type, Shape.of(3, -1)),
                        new TensorSpec("SCALAR", type, Shape.of(1), false, false, Shape.SCALAR)),
                List.of(new TensorSpec("OUT", type, Shape.of(10))));
        assertThat(BACKEND.unavailableReason()).isNull();
        byte[] model = EngineGraph.of(config, "model.plan");
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            OrtException e = catchThrowableOfType(
                    OrtException.class,
                    () -> OrtEnvironment.getEnvironment()
                            .createSession(model, options)
                            .close());
            assertThat(e.getCode()).isEqualTo(OrtException.OrtErrorCode.ORT_NOT_IMPLEMENTED);
            assertThat(e).hasMessageContaining("EPContext").hasMessageContaining("'engine'");
            if (type == DataType.FP32) {
                assertThat(e)
                        .hasMessageContaining(
                                "EPContext node generated by 'TensorrtExecutionProvider' is not compatible");
            }
        }
    }

    @Test
    void theServiceLoaderFindsIt() {
        Backend found = ServiceLoader.load(Backend.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(each -> each.name().equals("tensorrt"))
                .findFirst()
                .orElseThrow();
        assertThat(found.platforms()).containsExactly("tensorrt_plan");
        assertThat(found.defaultFiles()).startsWith("model.plan");
        assertThat(found.needsGpu()).isTrue();
        assertThat(found.gpuUnavailableReason()).contains("the plugin onnxruntime-cuda");
    }

    @Test
    void withoutTheGpuBuildTheLoadSaysSoAndLeavesNothing() throws IOException {
        ServingException e = rejected(source("model.plan", PLAN), config(), Map.of());
        assertThat(e.describe())
                .contains("has kind KIND_GPU but server does not support GPUs")
                .contains("nereid plugins install onnxruntime-cuda");
        assertThat(root.resolve("scratch")).isEmptyDirectory();
    }

    @Test
    void theBeginningOfThePlanIsChecked() throws IOException {
        assertRejected(plan(8, 6, 1, 6), ErrorCode.FAILED_PRECONDITION, "is a plan of TensorRT 8.6.1.6", "TensorRT 10");
        assertRejected(plan(11, 0, 0, 1), ErrorCode.FAILED_PRECONDITION, "is a plan of TensorRT 11.0.0.1");
        assertRejected(new byte[0], ErrorCode.INVALID_ARGUMENT, "the file is empty (0 bytes)");
        assertRejected(
                "ptrt....".getBytes(StandardCharsets.US_ASCII),
                ErrorCode.INVALID_ARGUMENT,
                "does not begin with 'ftrt'",
                "8.6 and newer");
        assertRejected("ftrt".getBytes(StandardCharsets.US_ASCII), ErrorCode.INVALID_ARGUMENT, "ends after 4 bytes");
        assertRejected(
                "version https://git-lfs.github.com/spec/v1\n".getBytes(StandardCharsets.US_ASCII),
                ErrorCode.INVALID_ARGUMENT,
                "Git LFS pointer");
        // Another serialization: TensorRT decides, when ONNX Runtime has it.
        byte[] later = plan(8, 0, 0, 0);
        later[4] = 1;
        assertRejected(later, ErrorCode.INVALID_ARGUMENT, "server does not support GPUs");
    }

    private void assertRejected(byte[] plan, ErrorCode code, String... texts) throws IOException {
        ServingException e = rejected(source("model.plan", plan), config(), Map.of());
        assertThat(e.code()).isEqualTo(code);
        assertThat(e.getMessage()).contains(texts);
        assertThat(e.remedy()).isNotBlank();
    }

    @Test
    void otherNamesOfPlansAreFoundAndMissingOnesNamed() throws IOException {
        ModelLocation source = source("model.engine", plan(9, 0, 0, 1));
        assertThat(rejected(source, config(), Map.of()).getMessage()).contains("model.engine' is a plan of TensorRT 9");
        ModelConfig named = config().toBuilder().modelFile("other.plan").build();
        assertThat(rejected(source, named, Map.of()).getMessage())
                .contains("unable to find")
                .contains("other.plan")
                .contains("has model.engine");
        ModelConfig outside = config().toBuilder().modelFile("../../x.plan").build();
        assertThat(rejected(source, outside, Map.of()).getMessage()).contains("outside the version's directory");
    }

    @Test
    void inputsAndOutputsMustBeWrittenWithTypesOfTensorRt() {
        TensorSpec good = new TensorSpec("IN", DataType.FP32, Shape.of(1));
        assertThat(rejected(config("m", 0, List.of(), List.of(good))).describe())
                .contains("its configuration has no input")
                .contains("polygraphy inspect model");
        assertThat(rejected(config("m", 0, List.of(good), List.of())).getMessage())
                .contains("has no output");
        for (DataType type : DataType.values()) {
            ModelConfig config = config("m", 0, List.of(good), List.of(new TensorSpec("OUT", type, Shape.of(1))));
            switch (type) {
                case BOOL, UINT8, INT8, INT32, INT64, FP16, BF16, FP32 -> BACKEND.check(config);
                case UINT16, INT16, UINT32, UINT64, FP64, BYTES ->
                    assertThat(rejected(config).getMessage())
                            .contains("output 'OUT' of model 'm' has data_type TYPE_"
                                    + (type == DataType.BYTES ? "STRING" : type))
                            .contains("which TensorRT does not have");
            }
        }
    }

    private static ModelConfig with(int level, List<ExecutionAccelerator> cpu, ExecutionAccelerator... gpu) {
        return config().toBuilder()
                .optimization(new OptimizationPolicy(level, cpu, List.of(gpu)))
                .build();
    }

    private static ExecutionAccelerator accelerator(String name, String... option) {
        return new ExecutionAccelerator(name, option.length == 0 ? Map.of() : Map.of(option[0], option[1]));
    }

    @Test
    void whatWouldHaveNoEffectIsRefusedByName() {
        assertRefused(with(1, List.of()), "optimization.graph.level");
        assertRefused(with(0, List.of(accelerator("openvino"))), "cpu_execution_accelerator");
        assertRefused(with(0, List.of(), accelerator("cuda")), "'cuda'");
        assertRefused(with(0, List.of(), accelerator("tensorrt", "precision_mode", "FP16")), "trt_fp16_enable");
        assertRefused(
                with(0, List.of(), accelerator("tensorrt", "trt_engine_cache_enable", "1")), "trt_engine_cache_enable");
        assertRefused(with(0, List.of(), accelerator("tensorrt", "trt_cuda_graph_enable", "1")), "CUDA graphs");
        assertRefused(
                config().toBuilder().parameters(Map.of("gpu_mem_limit", "1")).build(), "gpu_mem_limit");
        assertRefused(
                config().toBuilder()
                        .parameters(Map.of(GpuOptions.FALLBACK, "cpu"))
                        .build(),
                GpuOptions.FALLBACK);
        assertRefused(config().toBuilder().operatorLibraries(List.of("ops.so")).build(), "op_library_filename");
        ModelConfig processors = config().toBuilder()
                .instanceGroups(List.of(InstanceGroup.cpu("m", 1)))
                .build();
        assertThat(rejected(processors).code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(rejected(processors).getMessage()).contains("runs on GPUs only");
    }

    private static void assertRefused(ModelConfig config, String name) {
        ServingException e = rejected(config);
        assertThat(e.code()).isEqualTo(ErrorCode.UNIMPLEMENTED);
        assertThat(e.getMessage()).contains(name);
        assertThat(e.remedy()).isNotBlank();
    }

    @Test
    void onnxRuntimeGetsTheLibrariesOfLayersAlone() {
        ModelConfig own = with(0, List.of(), accelerator("tensorrt", "trt_extra_plugin_lib_paths", "/models/m/a.so"));
        BACKEND.check(own);
        assertThat(TensorRtBackend.options(own))
                .isEqualTo(new GpuOptions(
                        Map.of(), Map.of("trt_extra_plugin_lib_paths", "/models/m/a.so"), GpuOptions.Fallback.NEVER));
        assertThat(TensorRtBackend.options(config()))
                .isEqualTo(new GpuOptions(Map.of(), Map.of(), GpuOptions.Fallback.NEVER));
        Map<String, String> merged =
                GpuSessions.withCommon(Map.of("trt_extra_plugin_lib_paths", "/models/m/a.so"), "/opt/b.so;/opt/c.so");
        assertThat(merged)
                .containsExactly(Map.entry("trt_extra_plugin_lib_paths", "/opt/b.so;/opt/c.so;/models/m/a.so"));
        assertThat(GpuSessions.withCommon(Map.of(), null)).isEmpty();
    }

    @Test
    void settingsOfTheServerAreChecked() throws IOException {
        ModelLocation source = source("model.plan", PLAN);
        assertThat(BACKEND.settingNames().orElseThrow()).containsExactlyInAnyOrder("plugins", "version-compatible");
        assertThat(rejected(source, config(), Map.of("plugins", "layers.so")).getMessage())
                .contains("has 'layers.so' (expected: absolute paths of libraries, separated by ';')");
        Path library = Files.write(root.resolve("layers.so"), new byte[1]).toAbsolutePath();
        assertThat(rejected(source, config(), Map.of("plugins", library + ";/absent.so"))
                        .getMessage())
                .contains("has '/absent.so'");
        assertThat(rejected(source, config(), Map.of("plugins", library.toString()))
                        .getMessage())
                .contains("server does not support GPUs");
        ServingException e = rejected(source, config(), Map.of("version-compatible", "true"));
        assertThat(e.code()).isEqualTo(ErrorCode.UNIMPLEMENTED);
        assertThat(e.getMessage()).contains("'version-compatible' is 'true'");
        assertThat(rejected(source, config(), Map.of("plugin", "x")).describe()).contains("plugins");
    }
}
