// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.Conversion;
import io.nereid.backends.sklearn.pickle.Fixtures;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is said of pickles, and what is made of them. */
class PickleConverterTest {
    private final PickleConverter converter = new PickleConverter();

    @TempDir
    Path directory;

    private Conversion of(String version, String fixture) {
        Path file = Fixtures.path(
                version, Fixtures.expected(version).get(fixture).get("file").asText());
        assertThat(converter.recognises(file)).isTrue();
        return converter.convert(file);
    }

    @ParameterizedTest
    @CsvSource({
        "1.9.1,xgb,model.ubj",
        "1.1.3,xgb,model.ubj",
        "0.24.2,xgb,model.json",
        "1.9.1,lgbm,model.txt",
        "1.9.1,cat_reg,model.cbm"
    })
    void theNativeModelOfABoosterIsTakenOut(String version, String fixture, String file) {
        Conversion conversion = of(version, fixture);
        assertThat(conversion.files()).containsOnlyKeys(file);
        String head =
                new String(Objects.requireNonNull(conversion.files().get(file)), 0, 120, StandardCharsets.ISO_8859_1);
        if (fixture.equals("xgb")) {
            // The model alone, without the configuration beside it in a snapshot.
            assertThat(head).startsWith("{").contains("learner").doesNotContain("Config");
        }
        assertThat(conversion.next()).hasSize(2).allMatch(line -> line.startsWith("nereid serve "));
    }

    @Test
    void whatIsServedAsItIsNeedsNoFile() {
        assertThat(of(Fixtures.NEW, "qda").files()).isEmpty();
        assertThat(of(Fixtures.NEW, "xgb_pipeline").files()).isEmpty();
        assertThat(of(Fixtures.NEW, "frame_model").description()).contains("sklearn.pipeline.Pipeline");
    }

    @Test
    void aClassOfAnotherLibraryIsLoadedByPython() throws Exception {
        Path file = directory.resolve("it's \"mine\".pkl");
        Files.writeString(file, "cprophet.forecaster\nProphet\n)R.");
        Conversion conversion = converter.convert(file);
        assertThat(conversion.description())
                .contains("prophet.forecaster.Prophet")
                .contains("nothing of it was run");
        String python = new String(Objects.requireNonNull(conversion.files().get("model.py")), StandardCharsets.UTF_8);
        assertThat(python).contains("FILE = \"it's \\\"mine\\\".pkl\"").contains("joblib.load(path)");
        assertThat(String.join("\n", conversion.next())).contains("only if you trust the file");
    }

    @Test
    void compiledLossFunctionsMayLackTheirPackage() throws Exception {
        for (String name : new String[] {"CyHalfBinomialLoss", "__pyx_unpickle_CyHalfBinomialLoss", "system"}) {
            Path file = directory.resolve("model.pkl");
            Files.writeString(file, "c_loss\n" + name + "\n.");
            String said = converter.convert(file).description();
            assertThat(said.contains("nothing of it was run")).isEqualTo(name.equals("system"));
        }
    }
}
