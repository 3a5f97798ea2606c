// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.Fixtures.Answer;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Models written by skl2onnx and onnxruntime-extensions: results equal those of ONNX Runtime in Python. */
class OnnxPackagesTest {
    private static final JsonNode EXPECTED = read();

    @TempDir
    Path root;

    private static JsonNode read() {
        try (InputStream in = OnnxPackagesTest.class.getResourceAsStream("/packages/expected.json")) {
            return new ObjectMapper().readTree(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Stream<String> named(boolean library) {
        return EXPECTED.properties().stream()
                .filter(e -> e.getValue().path("library").asBoolean() == library)
                .map(Map.Entry::getKey);
    }

    static Stream<String> classifiers() {
        return named(false);
    }

    static Stream<String> ownOperators() {
        return named(true);
    }

    private ModelLocation source(String name) throws IOException {
        try (InputStream in = OnnxPackagesTest.class.getResourceAsStream("/packages/" + name + ".onnx")) {
            return new Fixtures(root).source(name, Objects.requireNonNull(in).readAllBytes());
        }
    }

    private BackendModel load(ModelLocation source, ModelConfig config) {
        return Fixtures.BACKEND.load(source, config, new Fixtures(root).context(Map.of()));
    }

    private static Tensor tensor(String name, JsonNode input) {
        Shape shape = Shape.of(
                input.path("shape").valueStream().mapToLong(JsonNode::asLong).toArray());
        List<JsonNode> data = input.path("data").valueStream().toList();
        if (input.path("type").asText().equals("object")) {
            return Fixtures.strings(
                    name,
                    shape,
                    data.stream().map(v -> Fixtures.utf8(v.asText())).toArray(byte[][]::new));
        }
        float[] values = new float[data.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) data.get(i).asDouble();
        }
        return Fixtures.floats(name, shape, values);
    }

    private static void flatten(JsonNode value, List<JsonNode> into) {
        if (value.isArray()) {
            value.forEach(v -> flatten(v, into));
        } else {
            into.add(value);
        }
    }

    private static void answersAsThePackage(BackendModel model, JsonNode expected) {
        List<Tensor> inputs = new ArrayList<>();
        expected.path("inputs").properties().forEach(i -> inputs.add(tensor(i.getKey(), i.getValue())));
        List<Answer> answers = Fixtures.run(model, inputs);
        assertThat(answers)
                .extracting(Answer::name)
                .containsExactlyElementsOf(expected.path("outputs").properties().stream()
                        .map(Map.Entry::getKey)
                        .toList());
        for (Answer answer : answers) {
            JsonNode wanted = expected.path("outputs").path(answer.name());
            List<JsonNode> values = new ArrayList<>();
            flatten(wanted, values);
            assertThat(answer.shape().dim(0)).as(answer.name()).isEqualTo(wanted.size());
            if (answer.dataType() == DataType.FP32) {
                assertThat(answer.shape().elementCount()).isEqualTo(values.size());
                for (int i = 0; i < values.size(); i++) {
                    assertThat((double) answer.floats().get(i))
                            .isCloseTo(values.get(i).asDouble(), within(1e-6));
                }
            } else if (answer.dataType() == DataType.INT64) {
                assertThat(answer.longs())
                        .isEqualTo(values.stream().map(JsonNode::asLong).toList());
            } else {
                assertThat(answer.strings())
                        .isEqualTo(values.stream().map(JsonNode::asText).toList());
            }
        }
    }

    @ParameterizedTest
    @MethodSource("classifiers")
    void aConvertedClassifierAnswersAsItsPackageWithoutConfiguration(String name) throws Exception {
        JsonNode expected = EXPECTED.path(name);
        try (BackendModel model = load(source(name), ModelConfig.unspecified(name))) {
            answersAsThePackage(model, expected);
            if (expected.has("classes")) {
                String scores = model.config().outputs().get(1).name();
                assertThat(model.config().labels().get(scores))
                        .isEqualTo(expected.path("classes")
                                .valueStream()
                                .map(JsonNode::asText)
                                .toList());
                assertThat(model.config()
                                .outputs()
                                .get(1)
                                .modelShape()
                                .dim(model.config()
                                                .outputs()
                                                .get(1)
                                                .modelShape()
                                                .rank()
                                        - 1))
                        .as("the number of classes is known before the first answer")
                        .isEqualTo(expected.path("classes").size());
            }
        }
    }

    @ParameterizedTest
    @MethodSource("ownOperators")
    void operatorsOfThePackageRunWithItsLibrary(String name) throws Exception {
        Assumptions.assumeTrue(OrtLibrary.platform().equals("linux-x64"), "NOT TESTED: the library is for linux-x64");
        ModelLocation source = source(name);
        String entry = "/ai/onnxruntime/extensions/native/linux-x64/libonnxruntime_extensions4j_jni.so";
        try (InputStream library = Objects.requireNonNull(OnnxPackagesTest.class.getResourceAsStream(entry))) {
            Files.copy(library, source.modelDirectory().resolve("operators.so"));
        }
        assertThatThrownBy(() -> load(source, ModelConfig.unspecified(name)).close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e).hasMessageContaining("model.onnx");
                    assertThat(e.remedy()).contains("op_library_filename");
                });
        ModelConfig config = ModelConfig.builder(name)
                .operatorLibraries(List.of("operators.so"))
                .build();
        try (BackendModel model = load(source, config)) {
            answersAsThePackage(model, EXPECTED.path(name));
            answersAsThePackage(model, EXPECTED.path(name));
        }
    }
}
