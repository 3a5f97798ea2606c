// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Text categories of boosters in pickles, and snapshots of old versions. */
class BoosterPickleTest {
    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"lgbm_kinds", "xgb_kinds"})
    void columnsOfTextCategoriesAreTexts(String name) {
        try (BackendModel model = Models.load(Models.of(directory, name))) {
            assertThat(model.config().inputs().stream().map(TensorSpec::name))
                    .containsExactly("age", "city", "size", "income");
            assertThat(model.config().inputs().stream().map(TensorSpec::dataType))
                    .containsExactly(DataType.FP64, DataType.BYTES, DataType.BYTES, DataType.FP64);
        }
    }

    @Test
    void aCategoryThatLightgbmDoesNotKnowIsMissing() {
        try (BackendModel model = probabilities("lgbm_kinds")) {
            List<Object> unknown = Models.run(model, "predict_proba", row("Paris"));
            assertThat(unknown).isEqualTo(Models.run(model, "predict_proba", row("")));
            assertThat(unknown).isNotEqualTo(Models.run(model, "predict_proba", row("Zürich")));
        }
    }

    @Test
    void aCategoryThatXgboostDoesNotKnowIsRefused() {
        try (BackendModel model = probabilities("xgb_kinds")) {
            assertThat((Float) Models.run(model, "predict_proba", row("")).get(0))
                    .isCloseTo(0.5f, within(0.5f));
            assertThatThrownBy(() -> Models.run(model, "predict_proba", row("Paris")))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage())
                                .startsWith(
                                        "column 'city' has the category 'Paris', which is not in the training set of")
                                .contains("(expected: Bern, Chur, Nyon, or an empty text");
                    });
        }
    }

    private BackendModel probabilities(String name) {
        return Models.load(Models.of(directory, name), Models.with(name, Map.of("method", "predict_proba")));
    }

    private static Tensor[] row(String city) {
        return new Tensor[] {
            Models.doubles("age", Shape.of(1), 40),
            Models.texts("city", Shape.of(1), city),
            Models.texts("size", Shape.of(1), "M"),
            Models.doubles("income", Shape.of(1), 100)
        };
    }

    @ParameterizedTest
    @CsvSource({"0.90, before 1.0, xgboost<1' &&", "1.2.1, 1.0 to 1.2, xgboost<2' &&"})
    void snapshotsOfOldVersionsNameTheCommandsThatConvertThem(String version, String named, String command)
            throws IOException {
        byte[] pickle = Files.readAllBytes(Path.of("src/test/resources/old/xgboost-" + version + ".pkl"));
        assertThatThrownBy(() -> Models.load(Models.ofBytes(directory, "old", pickle)))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage()).contains("in the binary format of XGBoost " + named);
                    assertThat(e.remedy()).contains(command).endsWith("serve model.json");
                });
    }
}
