// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files that cannot be served are rejected with the reason and a remedy. */
class RefusalTest {
    @TempDir
    private Path directory;

    private void rejected(Backend backend, String file, byte[] bytes, String why, String remedy) {
        ModelLocation source = References.laidOut(directory, "m" + file, file, bytes);
        assertThatThrownBy(() ->
                        load(backend, source, ModelConfig.unspecified("m")).close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage()).contains(file).contains(why);
                    assertThat(e.remedy()).contains(remedy);
                });
    }

    private BackendModel load(Backend backend, ModelLocation source, ModelConfig config) {
        return backend.load(source, config, new BackendContext(1, directory, Map.of()));
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String json(String model) {
        return new String(References.bytes(References.model("xgboost", model)), StandardCharsets.UTF_8);
    }

    private static String lightgbm() {
        return new String(References.bytes(References.model("lightgbm", "binary-gbdt-cat")), StandardCharsets.UTF_8);
    }

    @Test
    void theOldBinaryFormatOfXgboostIsRefusedWithTheWayOut() {
        rejected(
                References.XGBOOST,
                "model.bst",
                text("binf\0\0\0?\0\0\0\0\3\0\0\0"),
                "binary format of XGBoost before 3.1",
                "booster.save_model(\"model.json\")");
    }

    @Test
    void foreignFilesAreCalledByTheirKind() {
        rejected(References.XGBOOST, "model.bst", new byte[] {(byte) 0x80, 4, 0x63}, "Python pickle", "save_model");
        rejected(References.XGBOOST, "model.ubj", new byte[] {0x1f, (byte) 0x8b, 8}, "compressed", "save_model");
        rejected(References.XGBOOST, "model.json", new byte[0], "empty", "save_model");
        rejected(References.XGBOOST, "model.json", text("{\"a\": 1}"), "no 'learner'", "save_model");
        rejected(References.XGBOOST, "model.json", text(lightgbm()), "LightGBM model", "lightgbm");
        rejected(References.LIGHTGBM, "model.txt", text("hello"), "begins with a line 'tree'", "model.txt");
        rejected(References.LIGHTGBM, "model.txt", text("{\"learner\": {}}"), "JSON or UBJ", "xgboost");
        rejected(References.LIGHTGBM, "model.txt", text("tree\nversion=v4\n"), "num_tree_per_iteration", "save_model");
    }

    @Test
    void damagedModelsOfXgboostSayWhatIsWrong() {
        String json = json("reg-squarederror-gbtree-missing-categorical.json");
        rejected(References.XGBOOST, "model.json", text(json.substring(0, 5000)), "", "damaged");
        rejected(
                References.XGBOOST,
                "model.json",
                text(json.replace("reg:squarederror", "my:own")),
                "objective 'my:own' is unknown",
                "update");
        rejected(
                References.XGBOOST,
                "model.json",
                text(json.replace("\"name\":\"gbtree\"", "\"name\":\"gbbush\"")),
                "booster 'gbbush' is unknown",
                "damaged");
        rejected(
                References.XGBOOST,
                "model.json",
                text(json.replace("\"num_feature\":\"6\",\"num_target\"", "\"num_feature\":\"2\",\"num_target\"")),
                "splits on feature",
                "damaged");
        rejected(
                References.XGBOOST,
                "model.json",
                text(json.replaceFirst("\"left_children\":\\[1,", "\"left_children\":[0,")),
                "child 0",
                "damaged");
        String vectors = json("reg-squarederror-gbtree-vectors");
        int last = vectors.lastIndexOf("\"size_leaf_vector\":\"3\"");
        rejected(
                References.XGBOOST,
                "model.json",
                text(vectors.substring(0, last) + vectors.substring(last).replace("vector\":\"3", "vector\":\"1")),
                "has leaves of 1 values, and the first tree of 3",
                "damaged");
        rejected(
                References.XGBOOST,
                "model.json",
                text(json.replace("\"num_class\":\"0\"", "\"num_class\":\"2000000000\"")),
                "2000000000 outputs",
                "damaged");
    }

    @Test
    void damagedModelsOfLightgbmSayWhatIsWrong() {
        String text = lightgbm();
        rejected(References.LIGHTGBM, "model.txt", text(text.substring(0, text.length() / 2)), "", "damaged");
        rejected(
                References.LIGHTGBM,
                "model.txt",
                text(text.replace("end of trees", "")),
                "no 'end of trees'",
                "damaged");
        rejected(
                References.LIGHTGBM,
                "model.txt",
                text(text.replaceFirst("left_child=1 ", "left_child=0 ")),
                "child 0",
                "damaged");
        rejected(
                References.LIGHTGBM,
                "model.txt",
                text(text.replace("objective=binary", "objective=my_own")),
                "objective 'my_own' is unknown",
                "update");
    }

    @Test
    void aFileCalledBstIsOfWhicheverLibraryWroteIt() {
        ModelLocation source = References.laidOut(directory, "either", "model.bst", text(lightgbm()));
        try (BackendModel model = load(References.XGBOOST, source, ModelConfig.unspecified("either"))) {
            assertThat(model.config().backend()).isEqualTo("lightgbm");
        }
        assertThat(References.LIGHTGBM.recognises(source.versionDirectory().resolve("model.bst")))
                .isTrue();
        assertThat(References.XGBOOST.recognises(source.versionDirectory().resolve("model.bst")))
                .isFalse();
    }

    @Test
    void filesOfCommonEndingsAreRecognisedByTheirBeginning() throws Exception {
        Path notes = Files.writeString(directory.resolve("notes.txt"), "tree notes\n");
        Path settings = Files.writeString(directory.resolve("settings.json"), "{\"a\": 1}");
        assertThat(References.LIGHTGBM.recognises(notes)).isFalse();
        assertThat(References.XGBOOST.recognises(settings)).isFalse();
        assertThat(References.XGBOOST.recognises(References.model("xgboost", "binary")))
                .isTrue();
        assertThat(References.LIGHTGBM.recognises(References.model("lightgbm", "binary")))
                .isTrue();
        assertThat(References.LIGHTGBM.recognises(directory.resolve("absent.txt")))
                .isFalse();
    }

    @Test
    void severalFilesOrNoneAreRefused() throws Exception {
        ModelLocation source = References.laidOut(directory, "two", "model.json", text("{}"));
        Files.writeString(source.versionDirectory().resolve("model.ubj"), "{}");
        assertThatThrownBy(() -> load(References.XGBOOST, source, ModelConfig.unspecified("two")))
                .hasMessageContaining("several files");
        assertThatThrownBy(() -> load(
                        References.XGBOOST,
                        source,
                        ModelConfig.builder("two").modelFile("other.json").build()))
                .hasMessageContaining("unable to find");
        assertThatThrownBy(() -> load(
                        References.XGBOOST,
                        source,
                        ModelConfig.builder("two").modelFile("../../x.json").build()))
                .hasMessageContaining("outside the version directory");
    }
}
