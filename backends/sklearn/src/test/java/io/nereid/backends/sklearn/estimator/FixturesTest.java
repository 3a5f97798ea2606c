// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.backends.sklearn.pickle.Fixtures;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Every fixture, of every version of scikit-learn, returns the results of scikit-learn. */
class FixturesTest {
    @TestFactory
    List<DynamicTest> modelsAnswerAsScikitLearnDoes() {
        List<DynamicTest> tests = new ArrayList<>();
        for (String version : Fixtures.VERSIONS) {
            for (Map.Entry<String, JsonNode> e : Fixtures.expected(version).properties()) {
                tests.add(DynamicTest.dynamicTest(version + " " + e.getKey(), () -> compare(version, e.getValue())));
            }
        }
        return tests;
    }

    @Test
    void theFixturesAreOfFarApartVersionsAndMany() {
        for (String version : Fixtures.VERSIONS) {
            assertThat(Fixtures.expected(version).size()).isGreaterThan(100);
        }
    }

    /** The table of the documentation has as many models as are compared. */
    @Test
    void theDocumentationCountsTheModels() throws IOException {
        String documentation = Files.readString(Path.of("..", "..", "docs", "FORMATS.md"));
        for (String library : List.of("scikit-learn", "XGBoost", "LightGBM", "CatBoost", "several")) {
            StringBuilder counts = new StringBuilder();
            for (String version : Fixtures.VERSIONS) {
                long count = Fixtures.expected(version).properties().stream()
                        .filter(e -> library(e.getKey()).equals(library))
                        .count();
                counts.append(" | ").append(count);
            }
            assertThat(documentation)
                    .as(library)
                    .containsPattern("\\| " + library + "[^|]*"
                            + counts.toString().substring(1).replace("|", "\\|"));
        }
    }

    private static String library(String fixture) {
        return switch (fixture.replaceFirst("_.*", "")) {
            case "xgb" -> "XGBoost";
            case "lgbm" -> "LightGBM";
            case "cat" -> "CatBoost";
            default -> fixture.endsWith("_boosters") ? "several" : "scikit-learn";
        };
    }

    private static void compare(String version, JsonNode fixture) {
        Estimator estimator = Fixtures.load(version, fixture.get("file").asText());
        DataTable input = Fixtures.table(fixture.get("rows"));
        JsonNode answers = fixture.get("answers");
        assertThat(answers.size()).isPositive();
        for (Map.Entry<String, JsonNode> answer : answers.properties()) {
            PredictMethod method = PredictMethod.of(answer.getKey());
            assertThat(method).as(answer.getKey()).isNotNull();
            if (!supported(estimator, method)) {
                continue;
            }
            DataTable got = estimator.checked(method, input);
            double tolerance = fixture.path("tolerance").asDouble(1e-9);
            check(answer.getKey(), answer.getValue(), got, estimator.width(method), tolerance);
        }
        assertThat(estimator.methods())
                .allSatisfy(m -> assertThat(answers.has(m.text())
                                || m == PredictMethod.SCORE_SAMPLES
                                || m == PredictMethod.PREDICT_LOG_PROBA)
                        .as(m.text())
                        .isTrue());
    }

    /** Discriminant analysis, voting and stacking also have {@code transform}, which is not supported. */
    private static boolean supported(Estimator estimator, PredictMethod method) {
        boolean can = estimator.can(method);
        assertThat(can || method == PredictMethod.TRANSFORM || method == PredictMethod.PREDICT_LOG_PROBA)
                .as(estimator.type() + " " + method)
                .isTrue();
        return can;
    }

    /** The largest finite number of an output, which errors are relative to. */
    private static double largest(JsonNode rows) {
        double largest = 0;
        for (JsonNode row : rows) {
            for (JsonNode cell : row.isArray() ? row : List.of(row)) {
                double v = cell.isTextual() && !cell.asText().matches("-?Infinity|NaN") ? 0 : Fixtures.number(cell);
                largest = Math.abs(v) <= Double.MAX_VALUE ? Math.max(largest, Math.abs(v)) : largest;
            }
        }
        return largest;
    }

    private static void check(String name, JsonNode expected, DataTable got, int width, double tolerance) {
        double largest = Math.max(1e-300, largest(expected));
        assertThat(got.rows()).as(name).isEqualTo(expected.size());
        SoftAssertions soft = new SoftAssertions();
        for (int r = 0; r < got.rows(); r++) {
            JsonNode row = expected.get(r);
            if (!row.isArray()) {
                soft.assertThat(width).as(name).isZero();
                assertThat(got.columns()).as(name).isEqualTo(1);
            } else {
                assertThat(got.columns()).as(name).isEqualTo(row.size());
                soft.assertThat(width).as(name).isIn(-1, row.size());
            }
            for (int c = 0; c < got.columns(); c++) {
                JsonNode cell = row.isArray() ? row.get(c) : row;
                if (got.text(r, c) != null) {
                    soft.assertThat(got.text(r, c)).as(name + " " + r).isEqualTo(cell.asText());
                } else {
                    double e = Fixtures.number(cell);
                    double g = got.at(r, c);
                    if (Double.isNaN(e) || Double.isInfinite(e)) {
                        soft.assertThat((Double) g).as(name + " " + r + "," + c).isEqualTo((Double) e);
                    } else {
                        soft.assertThat(g).as(name + " " + r + "," + c).isCloseTo(e, within(tolerance * largest));
                    }
                }
            }
        }
        soft.assertAll();
    }
}
