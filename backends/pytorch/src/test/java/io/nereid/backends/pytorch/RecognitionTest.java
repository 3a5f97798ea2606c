// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Recognition, validation and auto-completion of files without libtorch. */
class RecognitionTest {
    @TempDir
    Path directory;

    private static TorchScriptSignature script(String model) throws Exception {
        return TorchArchive.read(model, Models.root().resolve(model + "/1/model.pt"));
    }

    private static ModelConfig complete(String model) throws Exception {
        return new ConfigCompletion(ModelConfig.unspecified(model), script(model), true).complete(2);
    }

    @Test
    void archivesAndPicklesAreRecognisedAndOtherFilesAreNot() throws Exception {
        PytorchBackend backend = new PytorchBackend();
        assertThat(backend.platforms()).startsWith("pytorch_libtorch");
        assertThat(backend.recognises(Models.root().resolve("net/1/model.pt"))).isTrue();
        assertThat(backend.recognises(Models.root().resolveSibling("refused/legacy.pt")))
                .isTrue();
        assertThat(backend.recognises(Files.writeString(directory.resolve("notes.pt"), "notes")))
                .isFalse();
        assertThat(backend.recognises(directory)).isFalse();
        assertThat(backend.recognises(directory.resolve("absent.pt"))).isFalse();
    }

    @Test
    void argumentsAndAnswersAreReadFromTheCode() throws Exception {
        TorchScriptSignature options = script("options");
        assertThat(options.arguments())
                .extracting(a -> a.name() + " " + a.type() + " " + a.otherwise())
                .containsExactly(
                        "x Tensor null",
                        "mask Optional[Tensor] None",
                        "scale float 1.",
                        "times int 1",
                        "add bool False");
        assertThat(script("scores").names()).containsExactly("probabilities", "label");
        assertThat(script("extremes").names()).containsExactly("least", "greatest");
        assertThat(script("many").count()).isEqualTo(3);
        assertThat(script("add_sub").count()).isEqualTo(2);
        assertThat(script("numbers").types()).containsExactly("int", "float", "bool", "str", "List[int]");
        assertThat(script("in_place").mutates()).isTrue();
        assertThat(script("options").mutates()).isFalse();
    }

    @Test
    void namesAndTypesStandInTheMetadata() throws Exception {
        ModelConfig sums = complete("add_sub");
        assertThat(sums.inputs()).extracting(TensorSpec::name).containsExactly("INPUT0", "INPUT1");
        assertThat(sums.inputs()).allMatch(s -> s.dataType() == DataType.FP32 && s.unchecked() && !s.optional());
        assertThat(sums.outputs()).extracting(TensorSpec::name).containsExactly("OUTPUT__0", "OUTPUT__1");
        assertThat(sums.maxBatchSize()).isZero();
        assertThat(complete("embedded").inputs().get(0).dataType())
                .describedAs("the index of an embedding is an integer")
                .isEqualTo(DataType.INT64);
        ModelConfig options = complete("options");
        assertThat(options.inputs())
                .extracting(TensorSpec::dataType)
                .containsExactly(DataType.FP32, DataType.FP32, DataType.FP64, DataType.INT64, DataType.BOOL);
        assertThat(options.inputs()).extracting(TensorSpec::optional).containsExactly(false, true, true, true, true);
        assertThat(options.inputs().get(2).shape()).isEqualTo(Shape.of(1));
        assertThat(complete("numbers").outputs())
                .extracting(TensorSpec::dataType)
                .containsExactly(DataType.INT64, DataType.FP64, DataType.BOOL, DataType.BYTES, DataType.INT64);
    }

    @ParameterizedTest
    @CsvSource({
        "refused/eager.pt, torch.save, torch.jit.script",
        "refused/state_dict.pt, torch.save, torch.jit.trace",
        "refused/legacy.pt, torch.save, torch.jit.script",
        "refused/archive.mar, TorchServe archive (.mar), TorchScript file",
        "refused/exported.pt2, torch.export (.pt2), torch.onnx.export"
    })
    void whatIsNotTorchScriptIsRefusedByName(String file, String what, String advice) {
        Path path = Models.root().resolveSibling(file);
        assertThatThrownBy(() -> TorchArchive.read("m", path)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.getMessage()).contains("'m'").contains(what);
            assertThat(e.remedy()).contains(advice);
        });
    }

    @Test
    void theFirstArgumentIsTheModuleWhateverItsName() throws Exception {
        Path renamed = Models.withAnotherModuleName(
                Models.root().resolve("net/1/model.pt"), Files.createDirectories(directory.resolve("net")));
        assertThat(TorchArchive.read("net", renamed).arguments())
                .extracting(a -> a.name())
                .containsExactly("x");
        Path options = Models.withAnotherModuleName(
                Models.root().resolve("options/1/model.pt"), Files.createDirectories(directory.resolve("options")));
        assertThat(TorchArchive.read("options", options).arguments())
                .extracting(a -> a.name())
                .containsExactly("x", "mask", "scale", "times", "add");
    }

    @Test
    void nativeCodeIsRefused() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
            zip.putNextEntry(new ZipEntry("model/archive_format"));
            zip.putNextEntry(new ZipEntry("model/data/aotinductor/model/c0de.so"));
        }
        Path compiled = Files.write(directory.resolve("compiled.pt"), bytes.toByteArray());
        assertThatThrownBy(() -> TorchArchive.read("m", compiled)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.getMessage()).contains("a package of AOTInductor (.pt2): native code");
            assertThat(e.remedy()).contains("nereid convert " + compiled).contains("torch.onnx.export");
        });
    }

    @Test
    void otherArchivesAndTextsAreRefused() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
            zip.putNextEntry(new ZipEntry("readme.txt"));
        }
        Path other = Files.write(directory.resolve("other.pt"), bytes.toByteArray());
        assertThatThrownBy(() -> TorchArchive.read("m", other)).hasMessageContaining("not of TorchScript");
        Path text = Files.writeString(directory.resolve("text.pt"), "hello");
        assertThatThrownBy(() -> TorchArchive.read("m", text)).hasMessageContaining("not a TorchScript archive");
        Path empty = Files.writeString(directory.resolve("empty.pt"), "");
        assertThatThrownBy(() -> TorchArchive.read("m", empty)).hasMessageContaining("not a TorchScript archive");
    }

    @Test
    void aByteThatHasChangedIsFound() throws Exception {
        byte[] whole = Models.bytes("models/embedded/1/model.pt");
        byte[] changed = whole.clone();
        int at = indexOf(whole, new byte[] {0, 0, (byte) 0x80, 0x3f, 0, 0, 0, 0x40});
        changed[at + 2] ^= 1;
        Path file = Files.write(directory.resolve("model.pt"), changed);
        assertThatThrownBy(() -> TorchArchive.read("m", file)).hasMessageContaining("checksum of 'model/data/0'");
    }

    private static int indexOf(byte[] bytes, byte[] part) {
        for (int i = 0; i + part.length <= bytes.length; i++) {
            if (Arrays.equals(bytes, i, i + part.length, part, 0, part.length)) {
                return i;
            }
        }
        throw new AssertionError("not found");
    }

    @Test
    void damagedFilesAreRefusedInWords() throws Exception {
        byte[] whole = Models.bytes("models/net/1/model.pt");
        Random random = new Random(7);
        int refused = 0;
        for (int i = 0; i < 1000; i++) {
            byte[] bytes = i % 2 == 0 ? Arrays.copyOf(whole, random.nextInt(whole.length)) : whole.clone();
            for (int k = 0; bytes.length > 0 && k < 1 + i % 5; k++) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            Path file = Files.write(directory.resolve("model.pt"), bytes);
            try {
                TorchArchive.read("m", file);
            } catch (ServingException e) {
                refused++;
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e.remedy()).isNotBlank();
            }
        }
        assertThat(refused).isGreaterThan(500);
    }

    @Test
    void aConfigurationThatDoesNotFitIsRefusedByName() throws Exception {
        assertThatThrownBy(() -> wired("add_sub", List.of("INPUT0"), List.of("OUTPUT__0")))
                .hasMessageContaining("argument 'INPUT1' has no input");
        assertThatThrownBy(() -> wired("add_sub", List.of("INPUT0", "INPUT2"), List.of("OUTPUT__0")))
                .hasMessageContaining("not all of its inputs");
        assertThatThrownBy(() -> wired("add_sub", List.of("A__0", "A__1"), List.of("OUTPUT__2")))
                .hasMessageContaining("index 2");
        assertThatThrownBy(() -> wired("scores", List.of("logits"), List.of("labels")))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe()).contains("'labels'").contains("'label'?"));
        assertThatThrownBy(() -> complete("takes_dict")).hasMessageContaining("dict of tensors");
        assertThat(wired("add_sub", List.of("A__1", "A__0"), List.of("OUTPUT__1"))
                        .slots())
                .extracting(ArgumentBinding.Slot::feed)
                .containsExactly("A__0", "A__1");
        assertThat(wired("add_sub", List.of("first", "second"), List.of("sum", "difference"))
                        .slots())
                .extracting(ArgumentBinding.Slot::feed)
                .containsExactly("first", "second");
    }

    private static ArgumentBinding wired(String model, List<String> inputs, List<String> outputs) throws Exception {
        ModelConfig config = ModelConfig.builder(model)
                .inputs(inputs.stream().map(RecognitionTest::spec).toList())
                .outputs(outputs.stream().map(RecognitionTest::spec).toList())
                .build();
        ConfigCompletion completion = new ConfigCompletion(config, script(model), true);
        return completion.wiring(completion.complete(1));
    }

    private static TensorSpec spec(String name) {
        return new TensorSpec(name, DataType.FP32, Shape.of(-1));
    }

    @Test
    void parametersAreHonouredOrRefusedByName() {
        assertThat(PtSettings.read(Map.of("DISABLE_OPTIMIZED_EXECUTION", "true"), Map.of())
                        .optimize())
                .isFalse();
        assertThat(PtSettings.read(Map.of("INFERENCE_MODE", "true"), Map.of()).optimize())
                .isTrue();
        assertThat(PtSettings.read(Map.of(), Map.of("intra_op_thread_count", "2"))
                        .intraThreads())
                .isEqualTo(2);
        for (Map<String, String> wrong : List.of(
                Map.of("INFERENCE_MODE", "maybe"),
                Map.of("ENABLE_TORCH_COMPILE", "true"),
                Map.of("INTER_OP_THREAD_COUNT", "4"),
                Map.of("INTRA_OP_THREAD_COUNT", "none"))) {
            String name = wrong.keySet().iterator().next();
            assertThatThrownBy(() -> PtSettings.read(wrong, Map.of()))
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining(name);
        }
        assertThatThrownBy(() -> PtSettings.read(Map.of(), Map.of("threads", "2")))
                .hasMessageContaining("unknown setting 'threads'");
    }
}
