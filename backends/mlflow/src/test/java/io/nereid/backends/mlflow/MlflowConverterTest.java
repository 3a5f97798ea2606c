// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.Conversion;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
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
        String python = new String(Objects.requireNonNull(conversion.files().get("model.py")), StandardCharsets.UTF_8);
        assertThat(python).contains("mlflow.pyfunc.load_model").doesNotContain("@INPUTS@", "@COLUMNS@");
        assertThat(String.join("\n", conversion.next())).contains("only if you trust it");
    }

    @Test
    void otherFlavorsAreServedAsTheyAre() {
        Conversion conversion = converter.convert(Models.ROOT.resolve("sklearn-pickle"));
        assertThat(conversion.files()).isEmpty();
        assertThat(conversion.description()).contains("flavor sklearn").contains("backend sklearn");
    }
}
