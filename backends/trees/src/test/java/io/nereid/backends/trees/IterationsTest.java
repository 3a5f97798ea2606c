// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backends.trees.References.Expected;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Models restricted to some of their iterations. */
class IterationsTest {
    private static final Path EARLY = References.MODELS.resolve("early");

    private static ModelConfig config(Path model, String range, boolean margin) {
        return References.config(model)
                .parameters(Map.of("iteration_range", range, "output_margin", String.valueOf(margin)))
                .build();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "binary-logistic | best | best",
                "binary-logistic | range | 1,3",
                "binary-logistic | all | 0,0",
                "multi-softprob | best | best",
                "multi-softprob | range | 1,3",
                "multi-softprob | all | all",
                "reg-squarederror | best | best",
                "reg-squarederror | range | 1, 3",
                "reg-squarederror | all | all"
            })
    void answersAreThoseOfXgboostForTheSameIterations(String name, String tag, String range) {
        Path model = EARLY.resolve(name + ".json");
        Expected expected = References.expected(EARLY.resolve(name + "-" + tag + ".json"));
        for (boolean margin : new boolean[] {false, true}) {
            try (BackendModel loaded = References.load(model, config(model, range, margin))) {
                double[][] got = References.run(loaded, expected, 0, expected.rows(), "predict");
                double[][] wanted = margin ? expected.margins() : expected.answers();
                for (int row = 0; row < got.length; row++) {
                    for (int i = 0; i < got[row].length; i++) {
                        assertThat(got[row][i])
                                .isCloseTo(wanted[row][i], within(1e-6 * Math.max(1, Math.abs(wanted[row][i]))));
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"3,1", "0,1000", "-1,2", "1", "1,2,3", "some"})
    void aRangeThatThereIsNotIsRefused(String range) {
        Path model = EARLY.resolve("binary-logistic.json");
        assertThatThrownBy(() ->
                        References.load(model, config(model, range, false)).close())
                .hasMessageContaining("iteration_range '" + range + "'")
                .hasMessageContaining("expected: best, auto, all");
    }

    @ParameterizedTest
    @ValueSource(strings = "lightgbm")
    void aModelWithoutABestIterationSaysSo(String kind) {
        Path model = References.model(kind, "");
        assertThatThrownBy(() ->
                        References.load(model, config(model, "best", false)).close())
                .hasMessageContaining("has no best iteration");
        References.load(model, config(model, "auto", false)).close();
    }
}
