// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.explain.FunctionEngine;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ExplainSettingsTest {
    @TempDir
    Path directory;

    private static double[] explain(ExplainSettings settings) {
        FunctionEngine engine = new FunctionEngine().with("m", 2, "a,b", 0, x -> new double[] {2 * x[0] + x[1]});
        Exchange x = engine.ask(settings, "/v2/models/{model}/explain", "{\"instances\":[[1,2]]}", "m");
        return (double[]) x.first().get("shap_values");
    }

    private Path file(String name, String text) throws IOException {
        return Files.writeString(directory.resolve(name), text);
    }

    @Test
    void aBackgroundFileIsFoundOrNamed() throws IOException {
        file("background.json", "[[0,0],[2,2]]");
        assertThat(explain(ExplainSettings.of("shap", Map.of(), List.of(directory))))
                .containsExactly(0, 1);
        file("named.json", "{\"background\":[{\"b\":1,\"a\":0}]}");
        assertThat(explain(ExplainSettings.of("shap", Map.of("background", "named.json"), List.of(directory))))
                .containsExactly(2, 1);
        Path alone = file("rows.csv", "0,0\n0,1\n");
        assertThat(explain(ExplainSettings.of("shap", Map.of("background", "rows.csv"), List.of(alone))))
                .containsExactly(2, 1.5);
    }

    @Test
    void columnsThatAreNotFeaturesAreIgnored() throws IOException {
        file("background.csv", "b,name,a,\"y\"\n1,x,0,7\n\n3,z,0,8\n");
        assertThat(explain(ExplainSettings.of("shap", Map.of(), List.of(directory))))
                .containsExactly(2, 0);
        file("background.csv", "first,second\n1,0\n");
        assertThat(explain(ExplainSettings.of("shap", Map.of(), List.of(directory))))
                .containsExactly(0, 2);
    }

    @Test
    void cellsOfATableMayBeQuotedOrMissing() throws IOException {
        Path table = file("table.csv", "\"name, first\", b ,a\r\n\"x, y\",\"1\", \r\n   \r\nz, 2 ,NaN");
        assertThat(BackgroundReader.read(table).toString())
                .isEqualTo("[{name, first=NaN, b=1.0, a=NaN}, {name, first=NaN, b=2.0, a=NaN}]");
        assertThat((double[])
                        BackgroundReader.read(file("numbers.csv", "1, nan,\n")).get(0))
                .containsExactly(1, Double.NaN, Double.NaN);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1,2;;3 | line 3 has 1 cells, or some that are not numbers (expected: 2 numbers)",
                "1,2;3,x;4,5 | line 2 has 2 cells, or some that are not numbers (expected: 2 numbers)",
                "a,b;1,2;1,2,3 | line 3 has 3 cells, or some that are not numbers (expected: 2 numbers)",
                "a,b;\"1,2;3,4 | it ends within a quoted cell",
                "a,b; | it does not contain any rows",
                "; | it does not contain any rows",
            })
    void tablesThatCannotBeUsedAreRejectedWithTheLine(String text, String why) throws IOException {
        Path table = file("table.csv", text.replace(';', '\n'));
        assertThatThrownBy(() -> BackgroundReader.read(table))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("background file 'table.csv' cannot be used: " + why);
    }

    @Test
    void aTableThatIsNotTextIsRejected() throws IOException {
        Path table = Files.write(directory.resolve("table.csv"), new byte[] {'1', ',', (byte) 0xff, '\n'});
        assertThatThrownBy(() -> BackgroundReader.read(table))
                .hasMessageContaining("it cannot be read: MalformedInputException");
    }

    @Test
    void arraysOfNumpyAreRead() throws IOException {
        for (boolean columns : new boolean[] {false, true}) {
            String header =
                    "{'descr': '<f4', 'fortran_order': " + (columns ? "True" : "False") + ", 'shape': (2, 2), }";
            byte[] text =
                    String.format(java.util.Locale.ROOT, "%-117s\n", header).getBytes(StandardCharsets.US_ASCII);
            ByteBuffer out = ByteBuffer.allocate(10 + text.length + 16).order(ByteOrder.LITTLE_ENDIAN);
            out.put(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0})
                    .putShort((short) text.length)
                    .put(text);
            for (float value : columns ? new float[] {1, 3, 2, 4} : new float[] {1, 2, 3, 4}) {
                out.putFloat(value);
            }
            Path file = Files.write(directory.resolve("background.npy"), out.array());
            assertThat((List<?>) BackgroundReader.read(file)).satisfies(rows -> {
                assertThat((double[]) rows.get(0)).containsExactly(1, 2);
                assertThat((double[]) rows.get(1)).containsExactly(3, 4);
            });
            Files.write(file, java.util.Arrays.copyOf(out.array(), out.capacity() - 4));
            assertThatThrownBy(() -> BackgroundReader.read(file)).hasMessageContaining("does not fit its size");
        }
    }

    @Test
    void unknownSettingsAreRejected() throws IOException {
        assertThatThrownBy(() -> ExplainSettings.of("shapley", Map.of(), List.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("parameter 'method' is 'shapley'");
        assertThatThrownBy(() -> ExplainSettings.of("shap", Map.of("nsample", "3"), List.of()))
                .hasMessageContaining("unknown setting of the explainer 'nsample'")
                .extracting(e -> ((ServingException) e).remedy())
                .isEqualTo("did you mean nsamples?");
        assertThatThrownBy(() -> ExplainSettings.of("shap", Map.of("nsamples", "many"), List.of()))
                .hasMessageContaining("parameter 'nsamples' is 'many'");
        assertThatThrownBy(() -> ExplainSettings.of("shap", Map.of("timeout-ms", "0"), List.of()))
                .hasMessageContaining("parameter 'timeout_ms' is '0'");
        file("secret.json", "[[1]]");
        Path inner = Files.createDirectory(directory.resolve("inner"));
        assertThatThrownBy(() -> ExplainSettings.of("shap", Map.of("background", "../secret.json"), List.of(inner)))
                .hasMessageContaining("'../secret.json', which is not among the explainer's files");
        for (String text : List.of("{}", "[]", "nonsense")) {
            file("background.json", text);
            assertThatThrownBy(() -> ExplainSettings.of("shap", Map.of(), List.of(directory)))
                    .isInstanceOf(ServingException.class);
        }
    }

    @Test
    void settingsAreDefaultsOfRequests() throws IOException {
        file("background.json", "[[0,0]]");
        ExplainSettings settings = ExplainSettings.of(
                "lime", Map.of("nsamples", "50", "background_size", "20", "seed", "4"), List.of(directory));
        FunctionEngine engine = new FunctionEngine().with("m", 2, "a,b", 0, x -> new double[] {2 * x[0] + x[1]});
        String route = "/v1/models/{model}:explain";
        Exchange x = engine.ask(settings, route, "{\"instances\":[[1,2]]}", "m");
        assertThat(x.tree().get("method")).isEqualTo("lime");
        assertThat(x.tree().get("nsamples")).isEqualTo(50.0);
        Exchange other =
                engine.ask(settings, route, "{\"instances\":[[1,2]],\"parameters\":{\"method\":\"shap\"}}", "m");
        assertThat(((Map<?, ?>) other.tree().get("background")).get("origin")).isEqualTo("file background.json");
    }
}
