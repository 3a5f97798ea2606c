// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelSource;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CatboostBackendTest {
    @TempDir
    Path directory;

    private static TensorSpec column(String name, DataType type) {
        return new TensorSpec(name, type, Shape.of(1), false, false, Shape.SCALAR);
    }

    private void refused(String file, byte[] bytes, String... words) {
        ModelSource source = References.laidOut(directory, "m", file, bytes);
        assertThatThrownBy(() -> References.BACKEND
                        .load(source, ModelConfig.unspecified("m"), new BackendContext(1, directory, Map.of()))
                        .close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(Code.INVALID_ARGUMENT);
                    assertThat(e.getMessage() + " " + e.remedy()).contains(words);
                });
    }

    @Test
    void aModelOfNumbersHasOneMatrix() {
        try (BackendModel model = References.load("three-names")) {
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("input-0", DataType.FP32, Shape.of(4)));
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("predict", DataType.BYTES, Shape.SCALAR));
            assertThat(model.traits().tabular()).isTrue();
        }
    }

    @Test
    void aModelWithCategoriesHasAnInputForEachColumn() {
        try (BackendModel model = References.load("cat-two")) {
            assertThat(model.config().inputs())
                    .containsExactly(
                            column("age", DataType.FP32),
                            column("city", DataType.BYTES),
                            column("size", DataType.BYTES),
                            column("income", DataType.FP32),
                            column("code", DataType.BYTES));
            assertThat(model.config().parameters()).containsEntry("feature_names", "age,city,size,income,code");
        }
    }

    @Test
    void outputsAreThoseThatAConfigurationNames() {
        ModelConfig.Builder config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .outputs(List.of(
                        new TensorSpec("predict_proba", DataType.FP32, Shape.of(3)),
                        new TensorSpec("margin", DataType.FP64, Shape.of(-1))));
        JsonNode fixture = References.expected().get("three");
        try (BackendModel model = References.load("three", config)) {
            List<Object> got =
                    References.run(model, References.inputs(model, fixture.get("rows"), 0, 2), "predict_proba");
            assertThat(got).hasSize(6);
            assertThat((Double) got.get(4))
                    .isCloseTo(
                            fixture.get("answers")
                                    .get("predict_proba")
                                    .get(1)
                                    .get(1)
                                    .asDouble(),
                            org.assertj.core.api.Assertions.within(1e-6));
        }
    }

    @Test
    void whatDoesNotFitIsRefused() {
        ModelConfig.Builder wrong = ModelConfig.builder("m").parameters(Map.of("prediction_type", "Probability"));
        assertThatThrownBy(() -> References.load("reg-rmse", wrong).close())
                .hasMessageContaining("prediction_type 'Probability'");
        ModelConfig.Builder input = ModelConfig.builder("m")
                .maxBatchSize(4)
                .inputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(5))));
        assertThatThrownBy(() -> References.load("two", input).close()).hasMessageContaining("FP32[5]");
    }

    @Test
    void filesAreToldFromThoseOfOtherLibraries() throws IOException {
        Path own = Files.write(directory.resolve("model.json"), References.bytes("cat-two"));
        assertThat(References.BACKEND.recognises(own)).isTrue();
        Files.write(own, References.bytes("two"));
        assertThat(References.BACKEND.recognises(own)).isTrue();
        Files.writeString(own, "{\"learner\":{\"attributes\":{}}}");
        assertThat(References.BACKEND.recognises(own)).isFalse();
        Files.write(own, "CBM1....".getBytes(StandardCharsets.UTF_8));
        assertThat(References.BACKEND.recognises(own)).isTrue();
        assertThat(References.BACKEND.recognises(directory.resolve("none"))).isFalse();
    }

    @Test
    void theBinaryFormatIsRefusedWithTheWayOut() {
        refused("model.cbm", "CBM1....".getBytes(StandardCharsets.UTF_8), "binary format", "format=\"json\"");
    }

    @Test
    void categoriesWithoutTheirHashesAreRefused() {
        String text = new String(References.bytes("cat-two"), StandardCharsets.UTF_8);
        refused(
                "model.json",
                text.replace("\"cat_features_hash\"", "\"other\"").getBytes(StandardCharsets.UTF_8),
                "cat_features_hash",
                "pool=train_pool");
    }

    @Test
    void whatIsNotServedIsRefusedByName() {
        String text = new String(References.bytes("two"), StandardCharsets.UTF_8);
        refused(
                "model.json",
                text.replace("\"FloatFeature\"", "\"OnlineText\"").getBytes(StandardCharsets.UTF_8),
                "OnlineText",
                "ONNX");
        refused("model.json", "{}".getBytes(StandardCharsets.UTF_8), "features_info");
    }

    @Test
    void damagedFilesAreReadOrRefused() {
        Random random = new Random(5);
        for (String name : List.of("two", "cat-two", "reg-lossguide")) {
            byte[] whole = References.bytes(name);
            for (int round = 0; round < 150; round++) {
                byte[] bytes = whole.clone();
                for (int i = 0; i <= random.nextInt(4); i++) {
                    bytes[random.nextInt(bytes.length)] = (byte) "0123456789-{}[],:\"e.x".charAt(random.nextInt(21));
                }
                ModelSource source = References.laidOut(directory, "damaged", "model.json", bytes);
                try {
                    References.BACKEND
                            .load(source, ModelConfig.unspecified("m"), new BackendContext(1, directory, Map.of()))
                            .close();
                } catch (ServingException e) {
                    assertThat(e.code()).as(e.toString()).isEqualTo(Code.INVALID_ARGUMENT);
                }
            }
        }
    }
}
