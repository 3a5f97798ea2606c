// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.backend.BackendModel;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Predictions equal those of the Python package, for every trained model in both formats. */
class PythonPackageTest {
    private static final Map<String, String> TYPES =
            Map.of("margin", "RawFormulaVal", "predict_proba", "Probability", "predict_log_proba", "LogProbability");

    @TestFactory
    List<DynamicTest> answersAreThoseOfCatboost() {
        List<DynamicTest> tests = new ArrayList<>();
        for (Map.Entry<String, JsonNode> e : References.expected().properties()) {
            for (Map.Entry<String, JsonNode> answer :
                    e.getValue().get("answers").properties()) {
                for (String form : List.of(".cbm", ".json")) {
                    tests.add(DynamicTest.dynamicTest(
                            e.getKey() + form + " " + answer.getKey(),
                            () -> compare(e.getKey() + form, e.getValue(), answer.getKey(), answer.getValue())));
                }
            }
        }
        return tests;
    }

    @Test
    void thereAreManyModels() {
        assertThat(References.expected().size()).isGreaterThan(30);
    }

    @Test
    void bothFormsSayTheSame() {
        for (Map.Entry<String, JsonNode> e : References.expected().properties()) {
            try (BackendModel binary = References.loadFile(e.getKey() + ".cbm", ModelConfig.builder("m"));
                    BackendModel text = References.load(e.getKey())) {
                assertThat(binary.config().inputs())
                        .as(e.getKey())
                        .isEqualTo(text.config().inputs());
                assertThat(binary.config().outputs())
                        .as(e.getKey())
                        .isEqualTo(text.config().outputs());
            }
        }
    }

    private static void compare(String file, JsonNode fixture, String method, JsonNode reference) {
        ModelConfig.Builder config = ModelConfig.builder("m");
        if (TYPES.containsKey(method)) {
            config.parameters(Map.of("prediction_type", TYPES.get(method)));
        }
        JsonNode rows = fixture.get("rows");
        try (BackendModel model = References.loadFile(file, config)) {
            assertThat(model.config().outputs().get(0).name()).isEqualTo(method);
            List<Object> all = References.run(model, References.inputs(model, rows, 0, rows.size()), method);
            same(all, reference, 0, rows.size());
            for (int row = 0; row < rows.size(); row += 3) {
                same(References.run(model, References.inputs(model, rows, row, 1), method), reference, row, 1);
            }
        }
        if (!TYPES.containsKey(method)) {
            return;
        }
        // Selected by a request parameter.
        try (BackendModel model = References.loadFile(file, ModelConfig.builder("m"))) {
            String signature = model.signature(Map.of("prediction_type", TYPES.get(method)));
            assertThat(model.signatures().get(signature).outputs().get(0).name())
                    .isEqualTo(method);
            List<Tensor> inputs = References.inputs(model, rows, 0, rows.size());
            same(References.run(model, signature, inputs, method), reference, 0, rows.size());
        }
    }

    private static void same(List<Object> got, JsonNode reference, int from, int rows) {
        int width = got.size() / rows;
        assertThat(reference.get(0).isArray() ? reference.get(0).size() : 1).isEqualTo(width);
        for (int i = 0; i < got.size(); i++) {
            JsonNode row = reference.get(from + i / width);
            JsonNode cell = row.isArray() ? row.get(i % width) : row;
            Object value = got.get(i);
            if (value instanceof Double d) {
                assertThat(d)
                        .as("row %d", from + i / width)
                        .isCloseTo(cell.asDouble(), within(1e-6 * Math.max(1, Math.abs(cell.asDouble()))));
            } else if (value instanceof Boolean b) {
                assertThat(b).isEqualTo(cell.asText().equalsIgnoreCase("true"));
            } else {
                assertThat(value).isEqualTo(cell.asText());
            }
        }
    }
}
