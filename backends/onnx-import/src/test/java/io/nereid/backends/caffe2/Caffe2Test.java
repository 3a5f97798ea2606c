// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.caffe2;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.OnnxBackend;
import io.nereid.backends.onnximport.caffe2.Caffe2Backend;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Nets give Caffe2's results; unsupported ones are rejected with the operator's name. */
class Caffe2Test {
    private static final OnnxBackend ONNX = new OnnxBackend();

    @TempDir
    Path directory;

    private BackendContext context() {
        return new BackendContext(
                1, directory.resolve("scratch"), Map.of(), true, null, null, List.of(ONNX, new Caffe2Backend()));
    }

    private BackendModel load(ModelLocation source, ModelConfig config) {
        return new Caffe2Backend().load(source, config, context());
    }

    private ServingException rejected(ModelLocation source, ModelConfig config) {
        return Objects.requireNonNull(catchThrowableOfType(
                ServingException.class, () -> load(source, config).close()));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "mlp",
                "convnet",
                "convnet_last",
                "pools",
                "elements",
                "arithmetic",
                "layout",
                "reductions",
                "pictures",
                "products",
                "embedding",
                "mobile"
            })
    void netsAnswerAsCaffe2Does(String name) {
        NetCase net = NetCase.of(name);
        try (BackendModel model = load(net.layOut(directory), net.config())) {
            assertThat(model.config().platform()).isEqualTo("caffe2_netdef");
            assertThat(model.config().backend()).isEqualTo("caffe2");
            net.check(model);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"mlp", "convnet", "convnet_last", "pools", "mobile"})
    void netsWhoseWeightsTellTheShapesNeedNoConfiguration(String name) {
        NetCase net = NetCase.of(name);
        assertThat(net.auto()).isTrue();
        try (BackendModel model = load(net.layOut(directory), ModelConfig.unspecified(name))) {
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            net.check(model);
        }
    }

    @Test
    void metadataHasTheNamesAndShapesThatTheWeightsTell() {
        NetCase net = NetCase.of("convnet");
        try (BackendModel model = load(net.layOut(directory), ModelConfig.unspecified("convnet"))) {
            assertThat(model.config().inputs())
                    .containsExactly(new TensorSpec("data", DataType.FP32, Shape.of(3, -1, -1)));
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("softmax", DataType.FP32, Shape.of(10)));
        }
        NetCase last = NetCase.of("convnet_last");
        try (BackendModel model = load(last.layOut(directory), ModelConfig.unspecified("convnet_last"))) {
            assertThat(model.config().inputs().get(0).shape()).isEqualTo(Shape.of(-1, -1, 3));
        }
    }

    @Test
    void configurationsAreHeldAgainstTheNet() {
        ModelLocation source = NetCase.of("convnet").layOut(directory);
        ModelConfig config = ModelConfig.builder("convnet")
                .maxBatchSize(8)
                .inputs(List.of(new TensorSpec("data", DataType.FP32, Shape.of(3, 16, 16))))
                .outputs(List.of(new TensorSpec("pool1", DataType.FP32, Shape.of(8, 8, 8))))
                .build();
        try (BackendModel model = load(source, config)) {
            assertThat(model.config().maxBatchSize()).isEqualTo(8);
            assertThat(model.config().outputs()).extracting(TensorSpec::name).containsExactly("pool1");
        }
        ModelConfig wrong = config.toBuilder()
                .inputs(List.of(new TensorSpec("image", DataType.FP32, Shape.of(3, 16, 16))))
                .build();
        assertThat(rejected(source, wrong).getMessage()).contains("'image' which the model does not have");
    }

    @Test
    void dimensionsOfARowAreEnough() {
        NetCase net = NetCase.of("mlp");
        ModelConfig config = ModelConfig.builder("mlp")
                .inputs(List.of(new TensorSpec("data", DataType.FP32, Shape.of(8))))
                .build();
        try (BackendModel model = load(net.layOut(directory), config)) {
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            net.check(model);
        }
    }

    @Test
    void unknownOperatorsAreRefusedByName() {
        ServingException e = rejected(NetCase.of("unknown").layOut(directory), ModelConfig.unspecified("unknown"));
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).contains("'ChannelShuffle'").contains("model.netdef");
        assertThat(e.remedy()).contains("ONNX");
    }

    @Test
    void inputsOfUnknownShapesAskForAConfiguration() {
        ServingException e = rejected(NetCase.of("elements").layOut(directory), ModelConfig.unspecified("elements"));
        assertThat(e.getMessage()).contains("the shape of input 'x'");
        assertThat(e.remedy()).contains("config.pbtxt").contains("name: \"x\"");
    }

    @Test
    void netsWithoutTheirWeightsAreRefused() throws IOException {
        ModelLocation source = NetCase.of("mlp").layOut(directory);
        Files.delete(source.versionDirectory().resolve("init_model.netdef"));
        ServingException e = rejected(source, ModelConfig.unspecified("mlp"));
        assertThat(e.describe()).contains("init net beside");
    }

    @Test
    void foreignAndMissingFilesAreCalledByTheirNames() throws IOException {
        ModelLocation source = NetCase.of("mlp").layOut(directory);
        ModelConfig none = ModelConfig.unspecified("mlp");
        Path file = source.versionDirectory().resolve("model.netdef");
        Files.write(file, new byte[0]);
        assertThat(rejected(source, none).getMessage()).contains("empty (0 bytes)");
        Files.write(file, "version https://git-lfs.github.com/spec/v1".getBytes(StandardCharsets.UTF_8));
        assertThat(rejected(source, none).getMessage()).contains("Git LFS");
        Files.write(file, "name: \"mlp\"\nop { }".getBytes(StandardCharsets.UTF_8));
        assertThat(rejected(source, none).getMessage()).contains("cannot be loaded");
        Files.delete(file);
        assertThat(rejected(source, none).describe()).contains("model.netdef").contains("predict_net.pb");
        assertThat(rejected(source, none.toBuilder().modelFile("../../x").build())
                        .getMessage())
                .contains("outside");
    }

    @Test
    void truncatedAndDamagedFilesAreRefusedOrServedButNeverBreakTheServer() throws IOException {
        Random random = new Random(5);
        for (String name : List.of("convnet", "layout")) {
            NetCase net = NetCase.of(name);
            ModelLocation source = net.layOut(directory);
            for (String file : name.equals("convnet")
                    ? List.of("predict_net.pb", "init_net.pb")
                    : List.of("model.netdef", "init_model.netdef")) {
                Path path = source.versionDirectory().resolve(file);
                byte[] whole = Files.readAllBytes(path);
                for (int i = 0; i < 60; i++) {
                    byte[] damaged = Arrays.copyOf(whole, i < 20 ? random.nextInt(whole.length) : whole.length);
                    for (int k = 0; i >= 20 && k < 1 + i / 10; k++) {
                        damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
                    }
                    Files.write(path, damaged);
                    try {
                        load(source, net.config()).close();
                    } catch (ServingException e) {
                        assertThat(e.code()).as(e.describe()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    }
                }
                Files.write(path, whole);
            }
        }
    }

    @Test
    void nothingIsLeftInTheScratchDirectory() throws IOException {
        NetCase net = NetCase.of("mlp");
        try (BackendModel model = load(net.layOut(directory), net.config());
                Stream<Path> left = Files.list(directory.resolve("scratch"))) {
            assertThat(left).isEmpty();
            net.check(model);
        }
    }

    @Test
    void onlyNetsAreRecognised() {
        Caffe2Backend backend = new Caffe2Backend();
        assertThat(backend.recognises(Path.of("a/model.netdef"))).isTrue();
        assertThat(backend.recognises(Path.of("a/squeezenet_predict_net.pb"))).isTrue();
        assertThat(backend.recognises(Path.of("a/init_model.netdef"))).isFalse();
        assertThat(backend.recognises(Path.of("a/saved_model.pb"))).isFalse();
        assertThat(backend.recognises(Path.of("a/init_net.pb"))).isFalse();
    }
}
