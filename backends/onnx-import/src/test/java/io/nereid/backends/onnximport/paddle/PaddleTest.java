// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.caffe2.NetCase;
import io.nereid.backends.onnx.OnnxBackend;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** PaddlePaddle models give PaddlePaddle's results; unsupported ones are rejected with the operator's name. */
class PaddleTest {
    private static final PaddleBackend BACKEND = new PaddleBackend(List.of(new OnnxBackend()));

    @TempDir
    Path directory;

    private BackendModel load(ModelLocation source, ModelConfig config) {
        return BACKEND.load(source, config, new BackendContext(1, directory.resolve("scratch"), Map.of()));
    }

    private ServingException rejected(ModelLocation source, ModelConfig config) {
        return Objects.requireNonNull(catchThrowableOfType(
                ServingException.class, () -> load(source, config).close()));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pp_mlp",
                "pp_fluid",
                "pp_convnet",
                "pp_pictures",
                "pp_attention",
                "pp_elements",
                "pp_shapes",
                "pp_sums",
                "pp_whole"
            })
    void modelsAnswerAsPaddleDoesWithoutConfiguration(String name) {
        NetCase net = NetCase.of(name);
        try (BackendModel model = load(net.layOut(directory), ModelConfig.unspecified(name))) {
            assertThat(model.config().platform()).isEqualTo("paddle");
            assertThat(model.config().backend()).isEqualTo("paddle");
            net.check(model);
        }
    }

    @Test
    void metadataHasTheNamesAndShapesOfTheProgram() {
        NetCase net = NetCase.of("pp_convnet");
        try (BackendModel model = load(net.layOut(directory), ModelConfig.unspecified("pp_convnet"))) {
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            assertThat(model.config().inputs())
                    .containsExactly(new TensorSpec("image", DataType.FP32, Shape.of(3, 16, 16)));
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("softmax_0.tmp_0", DataType.FP32, Shape.of(4)));
            // Like KServe's server: the input may have any name and any numeric type.
            assertThat(model.traits().takesTables()).isTrue();
        }
    }

    @Test
    void inThePlaceOfKServesServerTheOnlyOutputHasItsName() {
        ModelConfig kserve = ModelConfig.builder("pp_convnet")
                .parameters(Map.of(ModelMetadata.KSERVE_SERVER, "true"))
                .build();
        ModelLocation source = NetCase.of("pp_convnet").layOut(directory);
        try (BackendModel own = load(source, ModelConfig.unspecified("pp_convnet"));
                BackendModel model = load(source, kserve)) {
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("output-0", DataType.FP32, Shape.of(4)));
            assertThat(row(model, "output-0")).isEqualTo(row(own, "softmax_0.tmp_0"));
        }
    }

    /** The result for a picture of zeros. */
    private static List<Float> row(BackendModel model, String output) {
        try (Tensor picture = Tensor.allocate("image", DataType.FP32, Shape.of(1, 3, 16, 16));
                ModelInstance instance = model.newInstance()) {
            List<Tensor> results = instance.run(List.of(picture), List.of(output));
            try {
                assertThat(results.get(0).name()).isEqualTo(output);
                List<Float> values = new ArrayList<>();
                for (int i = 0; i < 4; i++) {
                    values.add(results.get(0).buffer().getFloat(4 * i));
                }
                return values;
            } finally {
                Tensor.closeAll(results);
            }
        }
    }

    @Test
    void aFileForEachWeightIsReadToo() throws IOException {
        NetCase net = NetCase.of("pp_fluid");
        ModelLocation source = net.layOut(directory);
        Path all = source.versionDirectory().resolve("__params__");
        byte[] bytes = Files.readAllBytes(all);
        int from = 0;
        for (PaddleProgram.Variable weight :
                new PaddleConverter(PaddleProgram.parse(NetCase.bytes("pp_fluid", "__model__"))).weights()) {
            int length =
                    20 + ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getInt(from + 16);
            for (int i = 0, n = 4; i <= weight.dims().length; i++) {
                n *= i < weight.dims().length ? (int) weight.dims()[i] : 1;
                length += i < weight.dims().length ? 0 : n;
            }
            Files.write(
                    source.versionDirectory().resolve(weight.name()), Arrays.copyOfRange(bytes, from, from + length));
            from += length;
        }
        assertThat(from).isEqualTo(bytes.length);
        Files.delete(all);
        try (BackendModel model = load(source, ModelConfig.unspecified("pp_fluid"))) {
            net.check(model);
        }
    }

    @Test
    void unknownOperatorsAreRefusedByNameWithTheCommandThatExports() {
        ServingException e = rejected(NetCase.of("pp_unknown").layOut(directory), ModelConfig.unspecified("m"));
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).contains("'cumsum'").contains("model.pdmodel");
        assertThat(e.remedy())
                .contains("paddle2onnx --model_dir")
                .contains("--model_filename model.pdmodel --params_filename model.pdiparams");
    }

    @Test
    void documentsOfPaddle3AreRecognisedAndRefused() throws IOException {
        Path version = Files.createDirectories(directory.resolve("p").resolve("1"));
        Path document = Files.writeString(
                version.resolve("inference.json"), "{\"base_code\":{\"magic\":\"pir\",\"trainable\":false}}");
        assertThat(BACKEND.recognises(document)).isTrue();
        assertThat(BACKEND.recognises(Files.writeString(directory.resolve("model.json"), "{\"learner\": {}}")))
                .isFalse();
        ServingException e = rejected(
                new ModelLocation(new ServableId("p", 1), directory.resolve("p"), version),
                ModelConfig.unspecified("p"));
        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(e.describe())
                .contains("PaddlePaddle 3")
                .contains("FLAGS_enable_pir_api=0")
                .contains("paddle2onnx");
    }

    @Test
    void missingAndForeignFilesAreCalledByTheirNames() throws IOException {
        NetCase net = NetCase.of("pp_mlp");
        ModelConfig config = ModelConfig.unspecified("pp_mlp");
        ModelLocation source = net.layOut(directory);
        Path weights = source.versionDirectory().resolve("model.pdiparams");
        Files.write(weights, "not weights at all, but some longer text".getBytes(StandardCharsets.UTF_8));
        assertThat(rejected(source, config).getMessage()).contains("does not begin like PaddlePaddle's weights");
        Files.write(weights, NetCase.bytes("pp_convnet", "model.pdiparams"));
        assertThat(rejected(source, config).getMessage()).contains("do not belong together");
        byte[] longer = Arrays.copyOf(NetCase.bytes("pp_mlp", "model.pdiparams"), 2000);
        Files.write(weights, longer);
        assertThat(rejected(source, config).getMessage()).contains("bytes more than the program has weights");
        Files.delete(weights);
        assertThat(rejected(source, config).describe())
                .contains("model.pdiparams")
                .contains("beside the program");
        Files.writeString(source.versionDirectory().resolve("model.pdmodel"), "no program");
        assertThat(rejected(source, config).getMessage()).contains("model.pdmodel");
        ModelConfig outside = ModelConfig.builder("m").modelFile("../../x").build();
        assertThat(rejected(source, outside).getMessage()).contains("outside");
    }

    @Test
    void truncatedAndDamagedFilesAreRefusedOrServedButNeverBreakTheServer() throws IOException {
        Random random = new Random(7);
        NetCase net = NetCase.of("pp_convnet");
        ModelLocation source = net.layOut(directory);
        for (String file : List.of("model.pdmodel", "model.pdiparams")) {
            Path path = source.versionDirectory().resolve(file);
            byte[] whole = Files.readAllBytes(path);
            for (int i = 0; i < 150; i++) {
                byte[] damaged = Arrays.copyOf(whole, i < 30 ? random.nextInt(whole.length) : whole.length);
                for (int k = 0; i >= 30 && k < 1 + i / 20; k++) {
                    damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
                }
                Files.write(path, damaged);
                try {
                    load(source, ModelConfig.unspecified("m")).close();
                } catch (ServingException e) {
                    assertThat(e.code()).as(e.describe()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                }
            }
            Files.write(path, whole);
        }
    }
}
