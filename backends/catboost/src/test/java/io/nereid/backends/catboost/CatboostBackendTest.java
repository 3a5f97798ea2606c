// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
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

    private void rejected(String file, byte[] bytes, String... words) {
        ModelLocation source = References.laidOut(directory, "m", file, bytes);
        assertThatThrownBy(() -> References.BACKEND
                        .load(source, ModelConfig.unspecified("m"), new BackendContext(1, directory, Map.of()))
                        .close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage() + " " + e.remedy()).contains(words);
                });
    }

    @Test
    void aModelWithoutColumnsIsRefused() {
        String json = "{\"features_info\":{},\"oblivious_trees\":[{\"leaf_values\":[1],\"splits\":[]}]}";
        rejected("model.json", json.getBytes(java.nio.charset.StandardCharsets.UTF_8), "has no columns");
    }

    @Test
    void aModelOfNumbersHasOneMatrix() {
        try (BackendModel model = References.load("three-names")) {
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("input-0", DataType.FP32, Shape.of(4)));
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("predict", DataType.BYTES, Shape.SCALAR));
            assertThat(model.traits().takesTables()).isTrue();
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
    void aPredictionTypeThatARequestAsksForInVainIsRefused() {
        try (BackendModel model = References.load("reg-rmse")) {
            assertThat(model.signature(Map.of())).isEmpty();
            assertThat(model.signature(Map.of("prediction_type", "rawformulaval")))
                    .isEqualTo("margin");
            assertThat(model.signatures()).containsOnlyKeys("margin", "predict");
            assertThatThrownBy(() -> model.signature(Map.of("prediction_type", "Probability")))
                    .hasMessage("parameter 'prediction_type' is 'Probability' (expected for model 'm': RawFormulaVal or"
                            + " none)");
            assertThatThrownBy(() -> model.newInstance("other").close())
                    .hasMessageContaining("has no signature 'other' (expected: margin, predict)");
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
    void theBinaryFormatIsFoundWithoutConfiguration() throws IOException {
        assertThat(References.BACKEND.defaultFiles()).contains("model.cbm");
        assertThat(References.BACKEND.recognises(References.MODELS.resolve("cat-two.cbm")))
                .isTrue();
        ModelLocation source = References.laidOut(directory, "m", "model.cbm", References.file("cat-two.cbm"));
        try (BackendModel model = References.BACKEND.load(
                source, ModelConfig.unspecified("m"), new BackendContext(1, directory, Map.of()))) {
            assertThat(model.config().parameters()).containsEntry("feature_names", "age,city,size,income,code");
        }
    }

    @Test
    void categoriesThatAreWholeNumbersMayComeAsNumbers() {
        List<TensorSpec> inputs = List.of(
                column("word", DataType.BYTES),
                column("number", DataType.FP32),
                column("zip", DataType.INT64),
                column("unused", DataType.FP32));
        JsonNode fixture = References.expected().get("cat-words-min");
        ModelConfig.Builder config = ModelConfig.builder("m").maxBatchSize(40).inputs(inputs);
        try (BackendModel model = References.loadFile("cat-words-min.cbm", config)) {
            List<Object> got = References.run(model, References.inputs(model, fixture.get("rows"), 0, 40), "predict");
            for (int i = 0; i < 40; i++) {
                assertThat((Double) got.get(i))
                        .isCloseTo(
                                fixture.get("answers").get("predict").get(i).asDouble(),
                                org.assertj.core.api.Assertions.within(1e-6));
            }
        }
    }

    @Test
    void hashesAreThoseThatTheFilesTell() {
        int compared = 0;
        for (String name : List.of("cat-two", "cat-words-min")) {
            JsonNode hashes = References.json(name).get("features_info").get("cat_features_hash");
            for (JsonNode one : hashes) {
                byte[] text = one.get("value").asText().getBytes(StandardCharsets.UTF_8);
                assertThat(CityHash64.of(text, text.length))
                        .as(one.get("value").asText())
                        .isEqualTo((int) one.get("hash").asLong());
                compared++;
            }
        }
        assertThat(compared).isGreaterThan(50);
    }

    @Test
    void jsonNeedsNotSayWhatCategoriesAreHashedTo() {
        String text = new String(References.bytes("cat-two"), StandardCharsets.UTF_8);
        byte[] bytes = text.replace("\"cat_features_hash\"", "\"other\"").getBytes(StandardCharsets.UTF_8);
        JsonNode fixture = References.expected().get("cat-two");
        ModelLocation source = References.laidOut(directory, "m", "model.json", bytes);
        try (BackendModel model = References.BACKEND.load(
                source, ModelConfig.unspecified("m"), new BackendContext(1, directory, Map.of()))) {
            List<Object> got = References.run(model, References.inputs(model, fixture.get("rows"), 0, 30), "predict");
            for (int i = 0; i < 30; i++) {
                assertThat(((Double) got.get(i)).intValue())
                        .isEqualTo(fixture.get("answers").get("predict").get(i).asInt());
            }
        }
    }

    @Test
    void damagedBinaryFilesAreReadOrRefused() {
        Random random = new Random(7);
        for (String name : List.of("two", "cat-words-max", "reg-lossguide", "three-names")) {
            byte[] whole = References.file(name + ".cbm");
            for (int round = 0; round < 600; round++) {
                byte[] bytes = whole.clone();
                // Offsets and lengths stand at the beginning of each part.
                for (int i = 0; i <= random.nextInt(4); i++) {
                    int at = random.nextInt(random.nextBoolean() ? 300 : bytes.length);
                    bytes[at] = (byte) (random.nextBoolean() ? random.nextInt() : bytes[at] ^ 1 << random.nextInt(8));
                }
                if (round % 5 == 0) {
                    bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length));
                }
                ModelLocation source = References.laidOut(directory, "damaged", "model.cbm", bytes);
                try {
                    References.BACKEND
                            .load(source, ModelConfig.unspecified("m"), new BackendContext(1, directory, Map.of()))
                            .close();
                } catch (ServingException e) {
                    assertThat(e.code()).as(e.toString()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                }
            }
        }
    }

    @Test
    void listsThatLieOverEachOtherAreNotReadWithoutEnd() {
        // A root table whose third field is a list of 40,000 texts, all of them the same one.
        ByteBuffer b = ByteBuffer.allocate(1 << 20).order(ByteOrder.LITTLE_ENDIAN);
        b.put("CBM1".getBytes(StandardCharsets.US_ASCII)).putInt(b.capacity() - 8);
        int base = b.position();
        b.putInt(base, 16);
        b.putShort(base + 4, (short) 12).putShort(base + 6, (short) 20);
        b.putShort(base + 8, (short) 4).putShort(base + 10, (short) 8);
        b.putShort(base + 14, (short) 12);
        b.putInt(base + 16, 12);
        byte[] version = "FlabuffersModel_v1".getBytes(StandardCharsets.US_ASCII);
        b.putInt(base + 20, 200_000 - 20).putInt(base + 24, 200_100 - 24).putInt(base + 28, 64 - 28);
        b.putInt(base + 200_000, version.length).put(base + 200_004, version);
        b.putShort(base + 200_080, (short) 4).putInt(base + 200_100, 20);
        b.putInt(base + 64, 40_000);
        for (int i = 0; i < 40_000; i++) {
            int at = base + 68 + 4 * i;
            b.putInt(at, base + 300_000 - at);
        }
        b.putInt(base + 300_000, 700_000);
        rejected("model.cbm", b.array(), "vectors overlap");
    }

    @Test
    void whatIsNotServedIsRefusedByName() {
        String text = new String(References.bytes("two"), StandardCharsets.UTF_8);
        rejected(
                "model.json",
                text.replace("\"FloatFeature\"", "\"OnlineText\"").getBytes(StandardCharsets.UTF_8),
                "OnlineText",
                "model.py");
        rejected("model.json", "{}".getBytes(StandardCharsets.UTF_8), "features_info");
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
                ModelLocation source = References.laidOut(directory, "damaged", "model.json", bytes);
                try {
                    References.BACKEND
                            .load(source, ModelConfig.unspecified("m"), new BackendContext(1, directory, Map.of()))
                            .close();
                } catch (ServingException e) {
                    assertThat(e.code()).as(e.toString()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                }
            }
        }
    }
}
