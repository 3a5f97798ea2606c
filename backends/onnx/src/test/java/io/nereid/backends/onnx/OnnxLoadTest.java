// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static io.nereid.backends.onnx.Fixtures.config;
import static io.nereid.backends.onnx.Fixtures.floats;
import static io.nereid.backends.onnx.Fixtures.longs;
import static io.nereid.backends.onnx.Fixtures.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OnnxLoadTest {
    @TempDir
    Path root;

    private Fixtures fixtures() {
        return new Fixtures(root);
    }

    private static void assertRefused(ThrowingCallable call, String... texts) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(texts);
        });
    }

    private static TensorSpec fp32(String name, long... dims) {
        return new TensorSpec(name, DataType.FP32, Shape.of(dims));
    }

    private void assertConfigRefused(
            String fixture, int max, List<TensorSpec> in, List<TensorSpec> out, String... texts) {
        assertRefused(() -> fixtures().load(fixture, config(fixture, max, in, out, Map.of())), texts);
    }

    @Test
    void theBackendIsFoundAndWorksHere() {
        assertThat(ServiceLoader.load(Backend.class))
                .filteredOn(b -> b instanceof OnnxBackend)
                .singleElement()
                .satisfies(b -> {
                    assertThat(b.name()).isEqualTo("onnxruntime");
                    assertThat(b.platforms()).containsExactly("onnxruntime_onnx");
                    assertThat(b.defaultFiles()).containsExactly("model.onnx");
                    assertThat(b.unavailableReason()).isNull();
                });
    }

    @Test
    void thePackagedEngineHasNoTelemetry() throws Exception {
        for (String platform : List.of("linux-x64", "linux-aarch64")) {
            try (InputStream in =
                    Backend.class.getResourceAsStream("/ai/onnxruntime/native/" + platform + "/libonnxruntime.so")) {
                ByteBuffer library = ByteBuffer.wrap(Objects.requireNonNull(in).readAllBytes());
                assertThat(OrtLibrary.contains(library, "ORT_DISABLE_TELEMETRY"))
                        .isFalse();
                // The search itself works.
                assertThat(OrtLibrary.contains(library, "OrtGetApiBase")).isTrue();
            }
        }
    }

    @Test
    void nativesAreUnpackedOnceAndMendedWhenDamaged() throws Exception {
        OrtLibrary library = new OrtLibrary(root);
        Path first = Objects.requireNonNull(library.directory());
        assertThat(first).startsWith(root.resolve("nereid"));
        Path file = first.resolve(System.mapLibraryName("onnxruntime"));
        byte[] good = Files.readAllBytes(file);
        assertThat(library.directory()).isEqualTo(first);
        byte[] bad = good.clone();
        bad[bad.length / 2] ^= 1;
        Files.write(file, bad);
        assertThat(library.directory()).isEqualTo(first);
        assertThat(Files.readAllBytes(file)).isEqualTo(good);
    }

    @Test
    void aDirectoryThatOthersMayWriteIsNotTrusted() throws Exception {
        Files.setPosixFilePermissions(root, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertThat(new OrtLibrary(root).directory()).isNull();
    }

    @Test
    void whatIsLeftOpenIsTakenFromTheGraph() {
        try (BackendModel model = fixtures().load("add_sub_fp32")) {
            ModelConfig c = model.config();
            assertThat(c.backend()).isEqualTo("onnxruntime");
            assertThat(c.platform()).isEqualTo("onnxruntime_onnx");
            assertThat(c.maxBatchSize()).isEqualTo(4);
            assertThat(c.batching()).isEqualTo(DynamicBatching.EAGER);
            assertThat(c.instances()).isEqualTo(2);
            assertThat(c.inputs()).containsExactly(fp32("INPUT0", 16), fp32("INPUT1", 16));
            assertThat(c.outputs()).containsExactly(fp32("OUTPUT0", 16), fp32("OUTPUT1", 16));
            assertThat(model.memoryBytes()).isPositive();
            assertThat(model.traits().cancellable()).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"batch_one", "row_mean", "two_batches", "scalar", "no_inputs", "loop"})
    void whatCannotBeBatchedIsNot(String fixture) {
        try (BackendModel model = fixtures().load(fixture)) {
            assertThat(model.config().maxBatchSize()).isZero();
            assertThat(model.config().batching()).isNull();
        }
    }

    @Test
    void theDefaultBatchSizeIsASetting() {
        Fixtures f = fixtures();
        ModelLocation source = f.source("relu");
        ModelConfig open = ModelConfig.unspecified("relu");
        try (BackendModel model =
                Fixtures.BACKEND.load(source, open, f.context(Map.of("default-max-batch-size", "0")))) {
            assertThat(model.config().maxBatchSize()).isZero();
            assertThat(model.config().inputs()).containsExactly(fp32("X", -1, 4));
        }
        assertRefused(
                () -> Fixtures.BACKEND.load(source, open, f.context(Map.of("default-max-batch", "8"))),
                "default-max-batch-size");
    }

    @Test
    void aGivenConfigurationIsKeptInGraphOrder() {
        try (BackendModel model = fixtures()
                .load(
                        "graph_order",
                        config(
                                "graph_order",
                                8,
                                List.of(fp32("A", 3), fp32("Z", 2)),
                                List.of(fp32("FIRST", 3)),
                                Map.of()))) {
            assertThat(model.config().inputs()).extracting(TensorSpec::name).containsExactly("Z", "A");
            assertThat(model.config().outputs()).extracting(TensorSpec::name).containsExactly("FIRST");
            assertThat(model.config().maxBatchSize()).isEqualTo(8);
            assertThat(model.config().batching()).isNull();
        }
    }

    @Test
    void contradictionsBetweenConfigurationAndGraphAreNamed() {
        List<TensorSpec> none = List.of();
        assertConfigRefused("batch_one", 4, none, none, "model does not support batching", "'X'");
        assertConfigRefused("batch_one", 4, List.of(fp32("X", 4)), List.of(fp32("Y", 4)), "first dimension must be -1");
        assertConfigRefused("pair", 0, List.of(fp32("A", -1, -1)), none, "expects 1 inputs, model provides 2", "add B");
        assertConfigRefused("relu", 0, List.of(fp32("x", -1, 4)), none, "'x'", "did you mean 'X'?");
        assertConfigRefused(
                "relu",
                0,
                List.of(new TensorSpec("X", DataType.INT32, Shape.of(-1, 4))),
                none,
                "expects datatype TYPE_INT32 for input 'X', model provides TYPE_FP32");
        assertConfigRefused("relu", 0, List.of(fp32("X", 4)), none, "the model expects 2 dimensions (shape [-1,4])");
        assertConfigRefused("relu", 4, none, List.of(fp32("Y", 5)), "making complete shape [-1,5]");
        assertConfigRefused(
                "optional_input",
                0,
                List.of(fp32("X", -1, 4), new TensorSpec("BIAS", DataType.FP32, Shape.of(4), true)),
                none,
                "'BIAS' has a default value");
    }

    @Test
    void aSingleValueMayBeConfiguredAsAVectorOfOne() {
        try (BackendModel model = fixtures()
                .load("scalar", config("scalar", 0, List.of(fp32("X", 1)), List.of(fp32("Y", 1)), Map.of()))) {
            var answer = run(model, List.of(floats("X", Shape.of(1), 21))).get(0);
            assertThat(answer.shape()).isEqualTo(Shape.of(1));
            assertThat(answer.floats()).containsExactly(42f);
        }
    }

    @Test
    void parametersSetTheEngineUp() {
        Map<String, String> all = Map.of(
                "intra_op_thread_count",
                "2",
                "inter_op_thread_count",
                "2",
                "execution_mode",
                "1",
                "enable_mem_arena",
                "0",
                "enable_mem_pattern",
                "0",
                "optimization.graph.level",
                "2");
        assertRefused(
                () -> OrtSettings.read(
                        Map.of("enable_mem_arena", "0", "memory.enable_memory_arena_shrinkage", "cpu:0"), 2),
                "remove one of them");
        OrtSettings settings = OrtSettings.read(all, 8);
        assertThat(settings.intraThreads()).isEqualTo(2);
        assertThat(settings.parallel()).isTrue();
        assertThat(settings.arena()).isFalse();
        assertThat(OrtSettings.read(Map.of(), 8).intraThreads()).isEqualTo(1);
        assertThat(OrtSettings.read(Map.of("intra_op_thread_count", "0"), 8).intraThreads())
                .isEqualTo(8);
        for (Map<String, String> parameters : List.of(
                all, Map.of("memory.enable_memory_arena_shrinkage", "cpu:0"), Map.of("enable_mem_arena", "0"))) {
            try (BackendModel model = fixtures().load("relu", config("relu", -1, List.of(), List.of(), parameters))) {
                assertThat(run(model, List.of(floats("X", Shape.of(1, 4), -1, 2, -3, 4)))
                                .get(0)
                                .floats())
                        .containsExactly(0f, 2f, 0f, 4f);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "execution_mode, 2, Expected values for execution_mode are 0 or 1 but got 2",
        "enable_mem_arena, yes, but got yes",
        "intra_op_thread_count, -1, a whole number from 0",
        "memory.enable_memory_arena_shrinkage, gpu:0, expected: cpu:0"
    })
    void valuesThatMeanNothingAreRefused(String key, String value, String text) {
        assertRefused(() -> OrtSettings.read(Map.of(key, value), 2), text);
    }

    @Test
    void aParameterOfTheModelsOwnHarmsNobody() {
        assertThat(OrtSettings.read(Map.of("owner", "team sea"), 2)).isEqualTo(OrtSettings.read(Map.of(), 2));
    }

    @ParameterizedTest
    @CsvSource({
        "empty, the file is empty (0 bytes)",
        "text, unable to load model",
        "pointer, git lfs pull",
        "truncated, copy it again",
        "external_data_missing, which does not exist",
        "external_data_escape, outside the model's directory",
        "custom_domain, Frobnicate",
        "future_opset, older opset",
        "dangling, onnx.checker",
        "complex64, complex64",
        "float8_input, float8",
        "int4_input, 'X'",
        "optional_type, optional",
        "sequence_input, is a sequence",
        "sequence_output, is a sequence"
    })
    void filesThatCannotBeServedAreRefusedByName(String fixture, String text) {
        assertRefused(() -> fixtures().load(fixture), "model.onnx", text);
    }

    @Test
    void foreignAndMissingFilesAreNamed() {
        Fixtures f = fixtures();
        assertForeign(f, "<html><body>404", "starts with '<html><body>404'");
        assertForeign(f, "PK\3\4....", "zip archive");
        assertForeign(f, "GGUF....", "GGUF");
        ModelLocation source = new ModelLocation(new ServableId("none", 1), root, root);
        assertRefused(
                () -> Fixtures.BACKEND.load(source, ModelConfig.unspecified("none"), f.context(Map.of())),
                "unable to find",
                "model.onnx");
    }

    private static void assertForeign(Fixtures f, String content, String text) {
        ModelLocation source = f.source("foreign", Fixtures.utf8(content));
        assertRefused(
                () -> Fixtures.BACKEND.load(source, ModelConfig.unspecified("foreign"), f.context(Map.of())), text);
    }

    @Test
    void noPrefixOfAModelIsEverAnInternalError() throws Exception {
        Fixtures f = fixtures();
        byte[] whole =
                Files.readAllBytes(f.source("zipmap_string").versionDirectory().resolve("model.onnx"));
        for (int length = 0; length < whole.length; length += 7) {
            ModelLocation source = f.source("cut", Arrays.copyOf(whole, length));
            try (BackendModel model =
                    Fixtures.BACKEND.load(source, ModelConfig.unspecified("cut"), f.context(Map.of()))) {
                assertThat(model.config().name()).isEqualTo("cut");
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            }
        }
    }

    @Test
    void weightsBesideTheModelAreLoadedAndCounted() throws Exception {
        Fixtures f = fixtures();
        ModelLocation source = f.source("external_data");
        try (InputStream in = Objects.requireNonNull(getClass().getResourceAsStream("/models/external_data.bin"))) {
            Files.copy(in, source.versionDirectory().resolve("external_data.bin"));
        }
        try (BackendModel model =
                Fixtures.BACKEND.load(source, ModelConfig.unspecified("external_data"), f.context(Map.of()))) {
            assertThat(model.memoryBytes()).isEqualTo(243 + 32);
            assertThat(run(model, List.of(floats("X", Shape.of(1, 4), 0, 0, 0, 1)))
                            .get(0)
                            .floats())
                    .containsExactly(11f, 22f, 33f, 45f);
        }
    }

    @Test
    void aRealSentenceModelAnswers() {
        Path version =
                Path.of("../../examples/models/minilm/1").toAbsolutePath().normalize();
        Assumptions.assumeTrue(
                Files.exists(version.resolve("model.onnx")), "NOT TESTED: no model in " + version + "; fetch it first");
        ModelLocation source = new ModelLocation(new ServableId("minilm", 1), version.resolve(".."), version);
        try (BackendModel model = Fixtures.BACKEND.load(
                source, ModelConfig.unspecified("minilm"), fixtures().context(Map.of()))) {
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            long[] ids = new long[32];
            long[] ones = new long[32];
            Arrays.fill(ids, 2023);
            Arrays.fill(ones, 1);
            for (int round = 0; round < 4; round++) {
                var answer = run(
                        model,
                        List.of(
                                longs("input_ids", Shape.of(2, 16), ids),
                                longs("attention_mask", Shape.of(2, 16), ones),
                                longs("token_type_ids", Shape.of(2, 16), new long[32])));
                assertThat(answer.get(0).shape()).isEqualTo(Shape.of(2, 16, 384));
                // Two equal rows give two equal results.
                List<Float> values = answer.get(0).floats();
                assertThat(values.subList(0, 384)).isEqualTo(values.subList(16 * 384, 17 * 384));
            }
        }
    }
}
