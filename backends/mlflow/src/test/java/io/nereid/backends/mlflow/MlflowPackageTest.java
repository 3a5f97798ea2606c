// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Predictions equal those of {@code mlflow.pyfunc.load_model(directory).predict}. */
class MlflowPackageTest {
    static Stream<String> models() {
        return Models.names().stream();
    }

    @ParameterizedTest
    @MethodSource("models")
    void answersAreThoseOfThePackage(String name) {
        try (BackendModel model = Models.load(name, ModelConfig.unspecified("m"));
                ModelInstance invocation = model.newInstance()) {
            List<String> outputs =
                    model.config().outputs().stream().map(TensorSpec::name).toList();
            for (Map<String, Object> one : Models.cases(name)) {
                List<Tensor> inputs = Models.inputs(model.config(), one.get("request"));
                List<Tensor> results = invocation.run(inputs, outputs);
                Object answer = one.get("answer");
                for (Tensor result : results) {
                    Object expected = answer instanceof Map<?, ?> named ? named.get(result.name()) : answer;
                    equal(Models.values(result), flat(expected), name);
                }
                Tensor.closeAll(results);
                Tensor.closeAll(inputs);
            }
        }
    }

    private static void equal(List<Object> found, List<Object> expected, String name) {
        assertThat(found).as(name).hasSameSizeAs(expected);
        for (int i = 0; i < found.size(); i++) {
            if (expected.get(i) instanceof Double number) {
                double tolerance = name.startsWith("lightgbm") || name.startsWith("sklearn") ? 1e-9 : 1e-6;
                assertThat((double) found.get(i)).as(name).isCloseTo(number, within(tolerance));
            } else if (expected.get(i) instanceof Number number) {
                assertThat(((Number) found.get(i)).longValue()).as(name).isEqualTo(number.longValue());
            } else {
                assertThat(found.get(i)).as(name).isEqualTo(expected.get(i));
            }
        }
    }

    private static List<Object> flat(Object value) {
        List<Object> flat = new ArrayList<>();
        if (value instanceof List<?> list) {
            list.forEach(v -> flat.addAll(flat(v)));
        } else {
            flat.add(value);
        }
        return flat;
    }
}
