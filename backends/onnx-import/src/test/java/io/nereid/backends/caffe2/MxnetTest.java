// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.caffe2;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.OnnxBackend;
import io.nereid.backends.onnximport.mxnet.MxnetBackend;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** MXNet models give MXNet's results; unsupported ones are rejected with the operator's name. */
class MxnetTest {
    private static final MxnetBackend BACKEND = new MxnetBackend(List.of(new OnnxBackend()));

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
    @ValueSource(strings = {"mx_mlp", "mx_convnet", "mx_parts", "mx_embedding"})
    void modelsAnswerAsMxnetDoes(String name) {
        NetCase net = NetCase.of(name);
        try (BackendModel model = load(net.layOut(directory), net.config())) {
            assertThat(model.config().platform()).isEqualTo("mxnet_mxnet");
            assertThat(model.config().backend()).isEqualTo("mxnet");
            net.check(model);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"mx_mlp", "mx_convnet"})
    void modelsWhoseWeightsTellTheShapesNeedNoConfiguration(String name) {
        NetCase net = NetCase.of(name);
        try (BackendModel model = load(net.layOut(directory), ModelConfig.unspecified(name))) {
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            net.check(model);
        }
    }

    @Test
    void metadataHasTheNamesOfMxnet() {
        NetCase net = NetCase.of("mx_convnet");
        try (BackendModel model = load(net.layOut(directory), ModelConfig.unspecified("mx_convnet"))) {
            assertThat(model.config().inputs())
                    .containsExactly(new TensorSpec("data", DataType.FP32, Shape.of(3, -1, -1)));
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("softmax_output", DataType.FP32, Shape.of(5)));
        }
    }

    @Test
    void unknownOperatorsAreRefusedByName() {
        NetCase net = NetCase.of("mx_unknown");
        ServingException e = rejected(net.layOut(directory), net.config());
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).contains("'erf'").contains("model-symbol.json");
        assertThat(e.remedy()).contains("ONNX");
    }

    @Test
    void missingAndForeignFilesAreCalledByTheirNames() throws IOException {
        NetCase net = NetCase.of("mx_mlp");
        ModelLocation source = net.layOut(directory);
        Path weights = source.versionDirectory().resolve("model-0000.params");
        Path graph = source.versionDirectory().resolve("model-symbol.json");
        Files.write(weights, "not weights at all".getBytes(StandardCharsets.UTF_8));
        assertThat(rejected(source, net.config()).getMessage()).contains("does not begin like MXNet's weights");
        Files.delete(weights);
        assertThat(rejected(source, net.config()).describe()).contains("model-0000.params");
        Files.write(graph, "{\"nodes\": []}".getBytes(StandardCharsets.UTF_8));
        assertThat(rejected(source, net.config()).getMessage()).contains("no nodes");
        Files.delete(graph);
        assertThat(rejected(source, net.config()).describe()).contains("model-symbol.json");
    }

    @Test
    void truncatedAndDamagedFilesAreRefusedOrServedButNeverBreakTheServer() throws IOException {
        Random random = new Random(7);
        NetCase net = NetCase.of("mx_convnet");
        ModelLocation source = net.layOut(directory);
        for (String file : List.of("model-symbol.json", "model-0000.params")) {
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

    @Test
    void documentsOfOthersAreNotTaken() throws IOException {
        Path graph = Files.writeString(directory.resolve("a-symbol.json"), "{\"learner\": {}}");
        assertThat(BACKEND.recognises(graph)).isFalse();
        Files.writeString(graph, "{\n\"nodes\": []}");
        assertThat(BACKEND.recognises(graph)).isTrue();
        Path other = Files.writeString(directory.resolve("model.json"), "{\"nodes\": []}");
        assertThat(BACKEND.recognises(other)).isFalse();
    }
}
