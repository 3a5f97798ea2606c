// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.Conversion;
import org.junit.jupiter.api.Test;

/** What is said of MLflow's directories, and what is made of them. */
class MlflowConverterTest {
    private final MlflowConverter converter = new MlflowConverter();

    @Test
    void aPythonFunctionIsServedByPython() {
        assertThat(converter.recognises(Models.ROOT.resolve("pyfunc"))).isTrue();
        assertThat(converter.recognises(Models.ROOT.resolve("pyfunc").resolve("MLmodel")))
                .isTrue();
        assertThat(converter.recognises(Models.ROOT)).isFalse();
        Conversion conversion = converter.convert(Models.ROOT.resolve("pyfunc"));
        assertThat(conversion.files()).isEmpty();
        assertThat(conversion.description()).contains("flavor python_function").contains("backend python");
        assertThat(String.join("\n", conversion.next()))
                .contains("only if you trust it", "python3 -m pip install mlflow", "nereid serve ");
    }

    @Test
    void otherFlavorsAreServedAsTheyAre() {
        Conversion conversion = converter.convert(Models.ROOT.resolve("sklearn-pickle"));
        assertThat(conversion.files()).isEmpty();
        assertThat(conversion.description()).contains("flavor sklearn").contains("backend sklearn");
    }
}
