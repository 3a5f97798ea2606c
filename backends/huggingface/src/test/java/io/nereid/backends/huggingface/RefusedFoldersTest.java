// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Folders that are damaged, hostile or of other models are refused with a sentence, and nothing is left behind. */
class RefusedFoldersTest {
    @TempDir
    Path root;

    private ModelLocation source;
    private Path folder;

    @BeforeEach
    void layOut() {
        source = EncoderFolders.location(root, "bert-classify");
        folder = source.versionDirectory();
    }

    private ServingException refused(Map<String, String> parameters) {
        ModelConfig config =
                ModelConfig.builder("bert-classify").parameters(parameters).build();
        ServingException e = catchThrowableOfType(
                ServingException.class,
                () -> EncoderFolders.BACKEND
                        .load(source, config, new BackendContext(1, root.resolve("scratch"), Map.of()))
                        .close());
        assertThat(e).isNotNull();
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getCause()).isNull();
        assertThat(root.resolve("scratch"))
                .satisfiesAnyOf(
                        p -> assertThat(p).doesNotExist(), p -> assertThat(p).isEmptyDirectory());
        return e;
    }

    private void replace(String file, String from, String to) throws IOException {
        String text = Files.readString(folder.resolve(file));
        assertThat(text).contains(from);
        Files.writeString(folder.resolve(file), text.replace(from, to));
    }

    private void weights(String header, int bytes) throws IOException {
        byte[] text = header.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(ByteBuffer.allocate(8)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(text.length)
                .array());
        out.writeBytes(text);
        out.writeBytes(new byte[bytes]);
        Files.write(folder.resolve("model.safetensors"), out.toByteArray());
    }

    @Test
    void otherArchitecturesNameTheWayOut() throws IOException {
        replace("config.json", "BertForSequenceClassification", "LlamaForCausalLM");
        ServingException e = refused(Map.of());
        assertThat(e.getMessage()).contains("LlamaForCausalLM", "model_type 'bert'", "which this server does not run");
        assertThat(e.remedy())
                .contains(
                        "optimum-cli export onnx --model " + folder,
                        "--task text-generation-with-past",
                        "nereid convert");
        replace("config.json", "LlamaForCausalLM", "T5ForConditionalGeneration");
        assertThat(refused(Map.of()).getMessage()).contains("T5ForConditionalGeneration");
    }

    @Test
    void theConverterWritesAModelForPythonOfOtherModelsOnly() throws IOException {
        TransformersConverter converter = new TransformersConverter();
        assertThat(converter.recognises(folder)).isTrue();
        assertThat(converter.recognises(folder.resolve("tokenizer.json"))).isFalse();
        assertThat(converter.convert(folder).description()).contains("served as it is");
        replace("config.json", "BertForSequenceClassification", "LlamaForCausalLM");
        assertThat(new String(
                        converter
                                .convert(folder.resolve("model.safetensors"))
                                .files()
                                .get("model.py"),
                        StandardCharsets.UTF_8))
                .contains("TASK = \"text-generation\"");
    }

    @Test
    void codeOfTheFolderAndQuantisedWeightsAreRefused() throws IOException {
        replace("config.json", "\"architectures\"", "\"auto_map\": {\"AutoModel\": \"a.B\"}, \"architectures\"");
        assertThat(refused(Map.of()).getMessage()).contains("code of its own (auto_map");
        replace("config.json", "\"auto_map\"", "\"quantization_config\"");
        assertThat(refused(Map.of()).getMessage()).contains("quantised (quantization_config");
    }

    @Test
    void windowsThatCannotBeAreRefused() {
        assertThat(refused(Map.of("doc_stride", "4")).getMessage()).contains("doc_stride is for question_answering");
        try (BackendModel model = EncoderFolders.load(root, "bert-answer", Map.of("doc_stride", "20"))) {
            for (String question : List.of("the cat sat on the mat in a big", "cat ".repeat(40))) {
                ServingException e = catchThrowableOfType(
                        ServingException.class,
                        () -> EncoderFolders.run(
                                model,
                                EncoderFolders.texts("TEXT", List.of(question)),
                                EncoderFolders.texts("TEXT_PAIR", List.of("the cat . ".repeat(20)))));
                assertThat(e).hasMessageContaining("expected: more than doc_stride, 20");
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            }
            ServingException e = catchThrowableOfType(
                    ServingException.class,
                    () -> EncoderFolders.run(
                            model,
                            EncoderFolders.texts("TEXT", List.of("the cat sat on the mat")),
                            EncoderFolders.texts("TEXT_PAIR", List.of("the cat . ".repeat(2000)))));
            assertThat(e).hasMessageContaining("windows (expected: at most 1024)");
        }
    }

    @Test
    void weightsAloneAreNoModel() throws IOException {
        Files.delete(folder.resolve("config.json"));
        ServingException e = refused(Map.of());
        assertThat(e.getMessage()).contains("has weights only");
        assertThat(e.remedy()).contains("torch.onnx.export");
    }

    @Test
    void aFolderWithoutTokenizerSaysHowToWriteOne() throws IOException {
        Files.delete(folder.resolve("tokenizer.json"));
        assertThat(refused(Map.of()).remedy()).contains("AutoTokenizer.from_pretrained");
    }

    @Test
    void aHeaderBeyondTheFileIsRefused() throws IOException {
        byte[] huge = new byte[16];
        Arrays.fill(huge, 0, 7, (byte) 0xff);
        Files.write(folder.resolve("model.safetensors"), huge);
        assertThat(refused(Map.of()).getMessage()).contains("declares a header of");
        Files.write(folder.resolve("model.safetensors"), new byte[3]);
        assertThat(refused(Map.of()).getMessage()).contains("it has 3 bytes");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 80]}} | has the offsets [0, 80], and the file has 8 bytes
        {"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}} | has the offsets [8, 0]
        {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}} | has 8 bytes, and F32 of shape [3] takes 12
        {"a": {"dtype": "F32", "shape": [4611686018427387904, 8], "data_offsets": [0, 8]}} | the impossible shape
        {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}} | the negative number -1
        {"a": {"dtype": "Q4", "shape": [2], "data_offsets": [0, 8]}} | the unknown type 'Q4'
        {"a": {"dtype": "F32", "shape": [2]}} | lacks its shape or data_offsets
        [[[[[[[[[[[[[[[[[[[[ | is not an object
        {"a": [[[[[[[[[[[[[[[[[[[[[[[[ | cannot be read
        {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}} | lack 'embeddings.word_embeddings.weight'
        """)
    void headersThatDoNotFitAreRefused(String header, String message) throws IOException {
        weights(header, 8);
        assertThat(refused(Map.of()).getMessage()).contains(message);
    }

    @Test
    void weightsOfAnotherShapeThanTheConfigurationAreRefused() throws IOException {
        replace("config.json", "\"intermediate_size\": 24", "\"intermediate_size\": 25");
        assertThat(refused(Map.of()).getMessage())
                .contains("bert.encoder.layer.0.intermediate.dense.weight", "[24, 16]", "[25, 16]");
        replace("config.json", "\"intermediate_size\": 25", "\"intermediate_size\": -7");
        assertThat(refused(Map.of()).getMessage()).contains("'intermediate_size': -7");
    }

    @Test
    void aDeepConfigurationIsRefused() throws IOException {
        Files.writeString(folder.resolve("config.json"), "[".repeat(100_000));
        assertThat(refused(Map.of()).getMessage()).contains("config.json", "is not JSON");
    }

    @Test
    void anIndexThatLeavesTheFolderIsRefused() throws IOException {
        Files.delete(folder.resolve("model.safetensors"));
        Files.writeString(
                folder.resolve("model.safetensors.index.json"),
                "{\"weight_map\": {\"a\": \"../../other.safetensors\"}}");
        assertThat(refused(Map.of()).getMessage()).contains("outside its folder");
    }

    @Test
    void parametersAreChecked() {
        assertThat(refused(Map.of("taks", "fill_mask")).remedy()).contains("task");
        assertThat(refused(Map.of("task", "translation")).getMessage()).contains("'translation'", "fill_mask");
        assertThat(refused(Map.of("max_length", "4000")).getMessage()).contains("max_length 4000", "at most 40");
        assertThat(refused(Map.of("aggregation_strategy", "best")).getMessage()).contains("'best'", "simple");
        assertThat(refused(Map.of("return_probabilities", "yes")).getMessage()).contains("'yes'");
        assertThat(refused(Map.of("task", "fill_mask")).getMessage()).contains("lack 'cls.predictions");
    }

    @Test
    void picklesThatCallFunctionsAreRefused() throws IOException {
        source = EncoderFolders.location(root, "cross-encoder");
        folder = source.versionDirectory();
        byte[] whole = Files.readAllBytes(folder.resolve("pytorch_model.bin"));
        String text = new String(whole, StandardCharsets.ISO_8859_1);
        assertThat(text).contains("ccollections\nOrderedDict\n");
        Files.write(
                folder.resolve("pytorch_model.bin"),
                text.replaceFirst("ccollections\nOrderedDict\n", "cposix_______\nsystem____\n")
                        .getBytes(StandardCharsets.ISO_8859_1));
        assertThat(refused(Map.of()).getMessage()).contains("calls 'posix_______.system____', which is not run");
        Files.write(folder.resolve("pytorch_model.bin"), Arrays.copyOf(whole, whole.length / 2));
        assertThat(refused(Map.of()).getMessage()).contains("not a zip archive");
    }

    @Test
    void aTextIsTruncatedAsTheParameterSays() {
        try (BackendModel model = EncoderFolders.load(root.resolve("b"), "bert-embed", Map.of("max_length", "5"))) {
            assertThat(EncoderFolders.run(model, EncoderFolders.texts("TEXT", List.of("the cat sat on the mat"))))
                    .isEqualTo(
                            EncoderFolders.run(model, EncoderFolders.texts("TEXT", List.of("the cat sat in a park"))));
        }
    }
}
