// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ServingException;
import io.nereid.tensor.Shape;
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

/** Requests are made up from a model's documents, or read in perf_analyzer's format. */
class InputsTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    private Path dir = Path.of("");

    private static ModelSignature signature(int maxBatchSize) throws IOException {
        String batch = maxBatchSize > 0 ? "-1," : "";
        return ModelSignature.of(
                JSON.readTree("{\"name\":\"m\",\"inputs\":["
                        + "{\"name\":\"A\",\"datatype\":\"FP32\",\"shape\":[" + batch + "2,-1]},"
                        + "{\"name\":\"B\",\"datatype\":\"INT8\",\"shape\":[" + batch + "2]},"
                        + "{\"name\":\"T\",\"datatype\":\"BYTES\",\"shape\":[" + batch + "1]}]}"),
                JSON.readTree(
                        "{\"max_batch_size\":" + maxBatchSize + ",\"input\":[{\"name\":\"T\",\"optional\":true}]}"));
    }

    private List<RequestSample> read(String json, int batchSize) throws IOException {
        Path file = dir.resolve("data.json");
        Files.writeString(file, json);
        ModelSignature signature = signature(8);
        return InputDataFile.read(file, signature, signature.elementShapes(Map.of()), batchSize);
    }

    private static TensorData input(RequestSample sample, String name) {
        return sample.inputs().stream()
                .filter(each -> each.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static ByteBuffer bytes(RequestSample sample, String name) {
        return ByteBuffer.wrap(input(sample, name).bytes()).order(ByteOrder.LITTLE_ENDIAN);
    }

    @Test
    void generatedInputsHaveTheShapesOfTheModel() throws IOException {
        ModelSignature signature = signature(8);
        Map<String, Shape> shapes = signature.elementShapes(Map.of("A", new long[] {2, 3}));
        RequestSample sample = new GeneratedInputs(signature, shapes, 5, 1).next(4, false);
        assertThat(input(sample, "A").shape()).isEqualTo(Shape.of(4, 2, 3));
        assertThat(input(sample, "B").shape()).isEqualTo(Shape.of(4, 2));
        assertThat(input(sample, "T").bytes()).hasSize(4 * (4 + 5));
        ByteBuffer floats = bytes(sample, "A");
        assertThat(floats.remaining()).isEqualTo(4 * 2 * 3 * 4);
        while (floats.hasRemaining()) {
            assertThat(floats.getFloat()).isBetween(0f, 1f);
        }
        RequestSample again = new GeneratedInputs(signature, shapes, 5, 1).next(4, false);
        assertThat(input(again, "A").bytes()).isEqualTo(input(sample, "A").bytes());
        RequestSample zero = new GeneratedInputs(signature, shapes, 5, 1).next(1, true);
        assertThat(input(zero, "A").bytes()).containsOnly(0);
        assertThat(input(zero, "T").bytes()).containsExactly(0, 0, 0, 0);
    }

    @Test
    void aShapeMayHaveTheBatchDimension() throws IOException {
        assertThat(signature(8).elementShapes(Map.of("A", new long[] {8, 2, 3})).get("A"))
                .isEqualTo(Shape.of(2, 3));
    }

    @Test
    void whatTheModelDoesNotTakeIsAnError() throws IOException {
        ModelSignature signature = signature(8);
        Map<String, Shape> shapes = signature.elementShapes(Map.of());
        assertThatThrownBy(() -> new GeneratedInputs(signature, shapes, 5, 1).next(1, false))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("the shape of input 'A' is [2,-1]");
        assertThatThrownBy(() -> signature.elementShapes(Map.of("A", new long[] {3, 3})))
                .hasMessageContaining("--shape A:[3,3]")
                .hasMessageContaining("[2,-1]");
        assertThatThrownBy(() -> signature.elementShapes(Map.of("X", new long[] {3})))
                .hasMessageContaining("has no input 'X'");
        assertThatThrownBy(() -> signature.requireBatchSize(9)).hasMessageContaining("1 to 8");
        assertThatThrownBy(() -> signature(0).requireBatchSize(2)).hasMessageContaining("not batched");
        assertThatThrownBy(() -> ModelSignature.of(
                        JSON.readTree("{\"name\":\"m\",\"inputs\":[]}"), JSON.readTree("{\"sequence_batching\":{}}")))
                .hasMessageContaining("takes sequences");
    }

    @Test
    void perfAnalyzersFilesAreRead() throws IOException {
        List<RequestSample> samples = read(
                "{\"data\":[{\"A\":[[1,2,3],[4,5,6]],\"B\":[-1,127],\"T\":[\"hé\"]},"
                        + "[{\"A\":{\"content\":[7,8],\"shape\":[2,1]},\"B\":{\"b64\":\"AQI=\"}}]]}",
                1);
        assertThat(samples).hasSize(2);
        assertThat(input(samples.get(0), "A").shape()).isEqualTo(Shape.of(1, 2, 3));
        assertThat(bytes(samples.get(0), "A").getFloat(20)).isEqualTo(6);
        assertThat(input(samples.get(0), "B").bytes()).containsExactly(-1, 127);
        assertThat(input(samples.get(0), "T").bytes()).isEqualTo("\3\0\0\0hé".getBytes(StandardCharsets.UTF_8));
        assertThat(input(samples.get(1), "A").shape()).isEqualTo(Shape.of(1, 2, 1));
        assertThat(input(samples.get(1), "B").bytes()).containsExactly(1, 2);
        assertThat(samples.get(1).inputs()).hasSize(2);
    }

    @Test
    void aBatchHasConsecutiveElements() throws IOException {
        List<RequestSample> samples =
                read("{\"data\":[{\"A\":[1,2],\"B\":[1,1]},{\"A\":[3,4],\"B\":[2,2]},{\"A\":[5,6],\"B\":[3,3]}]}", 2);
        assertThat(samples).hasSize(3);
        assertThat(input(samples.get(0), "B").bytes()).containsExactly(1, 1, 2, 2);
        assertThat(input(samples.get(2), "B").bytes()).containsExactly(3, 3, 1, 1);
        assertThat(input(samples.get(2), "A").shape()).isEqualTo(Shape.of(2, 2, 1));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"data\":[]} | has no elements",
                "{\"data\":[{\"A\":[1,2]}]} | has no value for input 'B'",
                "{\"data\":[{\"A\":[1,2],\"B\":[1,2],\"C\":[1]}]} | has no input 'C'",
                "{\"data\":[{\"A\":[1,2],\"B\":[1,200]}]} | has the element 200",
                "{\"data\":[{\"A\":[1,2],\"B\":[1,\"x\"]}]} | has the element \"x\"",
                "{\"data\":[{\"A\":[1,2],\"B\":[1]}]} | has 1 elements, which is not the shape [2]",
                "{\"data\":[{\"A\":[1,2,3],\"B\":[1,2]}]} | has 3 elements",
                "{\"data\":[{\"A\":{\"content\":[1],\"shape\":[1,1]},\"B\":[1,2]}]} | expected: [2,-1]",
                "{\"data\":[{\"A\":[1,2],\"B\":{\"b64\":\"%\"}}]} | is not base64",
                "{\"data\":[1]} | is not an object",
                "{\"data\":[{\"A\":[1,2],\"B\":[1,2]}],\"validation_data\":[]} | has the field 'validation_data'",
                "{ | is not JSON"
            })
    void wrongFilesAreErrorsThatNameThePlace(String json, String message) {
        assertThatThrownBy(() -> read(json, 1))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining(message);
    }

    @Test
    void aBatchOfDifferentShapesIsAnError() {
        assertThatThrownBy(() -> read("{\"data\":[{\"A\":[1,2],\"B\":[1,1]},{\"A\":[1,2,3,4],\"B\":[1,1]}]}", 2))
                .hasMessageContaining("one shape in a batch");
    }
}
