// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.Example;
import io.nereid.tfdata.Feature;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** half_plus_two of TensorFlow Serving's test data, written down here: y = x / 2 + 2. */
class RestExamplesTest {
    private final FakeEngine engine = new FakeEngine();
    private final List<Example> seen = new ArrayList<>();
    private final FakeClient client =
            new FakeClient(new V1Codec(engine, engine, Runnable::run, V1Options.defaults(Clock.system())));

    @BeforeEach
    void halfPlusTwo() {
        List<TensorSpec> examples = List.of(new TensorSpec("inputs", DataType.BYTES, Shape.of(-1)));
        List<TensorSpec> x = List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1)));
        Map<String, Signature> signatures = Map.of(
                "serving_default",
                new Signature(Signature.PREDICT, x, List.of(floats("y", -1)), Map.of()),
                "regress_x_to_y",
                new Signature(Signature.REGRESS, examples, List.of(floats("outputs", -1, 1)), Map.of()),
                "classify_x_to_y",
                new Signature(Signature.CLASSIFY, examples, List.of(floats("scores", -1, 1)), Map.of()));
        engine.add(
                new ModelMetadata(
                        new ServableId("half_plus_two", 123),
                        "fake",
                        x,
                        List.of(floats("y", -1)),
                        0,
                        Map.of(),
                        signatures),
                r -> {
                    float[] values = r.options().signature().equals("serving_default")
                            ? floats(r.inputs().get(0))
                            : parse(r.inputs().get(0));
                    Tensor out = Tensor.allocate(
                            r.options().signature().startsWith("regress")
                                    ? "outputs"
                                    : r.options().signature().startsWith("classify") ? "scores" : "y",
                            DataType.FP32,
                            r.options().signature().equals("serving_default")
                                    ? Shape.of(values.length)
                                    : Shape.of(values.length, 1));
                    for (int i = 0; i < values.length; i++) {
                        out.buffer().putFloat(i * 4, values[i] / 2 + 2);
                    }
                    return List.of(out);
                });
    }

    private static TensorSpec floats(String name, long... dims) {
        return new TensorSpec(name, DataType.FP32, Shape.of(dims));
    }

    private static float[] floats(Tensor t) {
        float[] values = new float[t.byteLength() / 4];
        t.buffer().asFloatBuffer().get(values);
        return values;
    }

    private float[] parse(Tensor t) {
        ByteBuffer b = t.buffer();
        float[] values = new float[(int) t.shape().dim(0)];
        for (int i = 0; i < values.length; i++) {
            byte[] message = new byte[b.getInt()];
            b.get(message);
            Example example = Example.parse(message);
            seen.add(example);
            Feature x = example.features().get("x");
            values[i] = x.kind() == Feature.Kind.FLOAT ? x.floatAt(0) : x.longAt(0);
        }
        return values;
    }

    private String post(String verb, String body) {
        return client.call("POST", "/v1/models/half_plus_two:" + verb, body).text();
    }

    @Test
    void theGoldenAnswersOfHalfPlusTwo() {
        assertThat(post("predict", "{\"instances\":[1.0,2.0,5.0]}")).isEqualTo("{\"predictions\":[2.5,3.0,4.5]}");
        assertThat(post("regress", "{\"signature_name\":\"regress_x_to_y\",\"examples\":[{\"x\":80.0}]}"))
                .isEqualTo("{\"results\":[42.0]}");
        assertThat(post("classify", "{\"signature_name\":\"classify_x_to_y\",\"examples\":[{\"x\":20.0}]}"))
                .isEqualTo("{\"results\":[[[\"\",12.0]]]}");
        assertThat(post("classify", "{\"examples\":[{\"x\":10},{\"x\":[12]}],\"signature_name\":\"classify_x_to_y\"}"))
                .isEqualTo("{\"results\":[[[\"\",7.0]],[[\"\",8.0]]]}");
    }

    @Test
    void theSpellingOfAValueDecidesTheKindOfItsFeature() {
        post(
                "regress",
                "{\"signature_name\":\"regress_x_to_y\",\"examples\":[{\"x\":[1.5,2e0,NaN],\"i\":[1,-2],\"t\":true,"
                        + "\"s\":[\"é\",{\"b64\":\"/w==\"}],\"empty\":[]}]}");
        Map<String, Feature> features = seen.get(0).features();
        assertThat(features.get("x")).isEqualTo(Feature.ofFloats(1.5f, 2, Float.NaN));
        assertThat(features.get("i")).isEqualTo(Feature.ofLongs(1, -2));
        assertThat(features.get("t")).isEqualTo(Feature.ofLongs(1));
        assertThat(features.get("s"))
                .isEqualTo(Feature.ofBytes(List.of("é".getBytes(StandardCharsets.UTF_8), new byte[] {-1})));
        assertThat(features).doesNotContainKey("empty");
    }

    @Test
    void theContextIsPartOfEveryExampleThatDoesNotOverrideIt() {
        assertThat(post(
                        "regress",
                        "{\"context\":{\"x\":4.0,\"c\":\"shared\"},\"examples\":[{},{\"x\":6.0}],"
                                + "\"signature_name\":\"regress_x_to_y\"}"))
                .isEqualTo("{\"results\":[4.0,5.0]}");
        assertThat(seen).allSatisfy(e -> assertThat(e.features().get("c")).isEqualTo(Feature.ofTexts("shared")));
    }

    @Test
    void aModelOfTensorsTakesFeaturesByTheNamesOfItsInputs() {
        assertThat(post("regress", "{\"examples\":[{\"x\":1.0},{\"x\":2.0},{\"x\":5.0}]}"))
                .isEqualTo("{\"results\":[2.5,3.0,4.5]}");
        assertThat(post("classify", "{\"examples\":[{\"x\":1.0},{\"x\":2}]}"))
                .isEqualTo("{\"results\":[[[\"\",2.5]],[[\"\",3.0]]]}");
    }

    /** TensorFlow 2 gives every signature the method for predictions. */
    @Test
    void theSignaturesOfASavedModelAreDecidedByTheirKeys() {
        List<TensorSpec> examples = List.of(new TensorSpec("inputs", DataType.BYTES, Shape.of(-1)));
        List<TensorSpec> x = List.of(floats("x", -1));
        TensorSpec outputs = floats("outputs", -1, 1);
        TensorSpec scores = floats("scores", -1, 1);
        Map<String, Signature> signatures = Map.of(
                "serving_default",
                new Signature(Signature.PREDICT, examples, List.of(outputs), Map.of()),
                "classify",
                new Signature(Signature.PREDICT, examples, List.of(scores), Map.of()),
                "doubles",
                new Signature(Signature.PREDICT, examples, List.of(scores), Map.of()),
                "tensors",
                new Signature(Signature.PREDICT, x, List.of(floats("y", -1)), Map.of()));
        engine.add(
                new ModelMetadata(
                        new ServableId("half_plus_two", 125),
                        "tensorflow_savedmodel",
                        examples,
                        List.of(outputs),
                        0,
                        Map.of(),
                        signatures),
                r -> {
                    float[] values = parse(r.inputs().get(0));
                    boolean doubles = r.options().signature().equals("doubles");
                    Tensor out = Tensor.allocate(
                            r.options().signature().equals("serving_default") ? "outputs" : "scores",
                            doubles ? DataType.FP64 : DataType.FP32,
                            Shape.of(values.length, 1));
                    for (int i = 0; i < values.length && !doubles; i++) {
                        out.buffer().putFloat(i * 4, values[i] / 2 + 2);
                    }
                    return List.of(out);
                });
        assertThat(post("regress", "{\"examples\":[{\"x\":80.0},{\"x\":2}]}")).isEqualTo("{\"results\":[42.0,3.0]}");
        String body = "{\"signature_name\":\"NAME\",\"examples\":[{\"x\":20.0}]}";
        assertThat(post("classify", body.replace("NAME", "classify"))).isEqualTo("{\"results\":[[[\"\",12.0]]]}");
        assertThat(post("classify", "{\"examples\":[{\"x\":20.0}]}"))
                .contains("Expected classification signature outputs to contain at least one of");
        assertThat(post("regress", body.replace("NAME", "classify")))
                .contains("No regression outputs found in SignatureDef");
        assertThat(post("classify", body.replace("NAME", "tensors")))
                .contains("No classification inputs found in SignatureDef");
        assertThat(post("classify", body.replace("NAME", "doubles")))
                .contains("Expected scores Tensor of DT_FLOAT. Got: DT_DOUBLE");
    }

    @Test
    void classesHaveTheirLabelsBesideTheirScores() {
        TensorSpec x = floats("x", -1);
        engine.add(
                new ModelMetadata(
                        new ServableId("half_plus_two", 124),
                        "fake",
                        List.of(x),
                        List.of(floats("y", -1)),
                        0,
                        Map.of()),
                r -> {
                    Tensor scores = Tensor.allocate("scores", DataType.FP32, Shape.of(1, 2));
                    scores.buffer().putFloat(0, 0.75f).putFloat(4, 0.25f);
                    byte[] text = {1, 0, 0, 0, 'a', 2, 0, 0, 0, 'b', 'c'};
                    Tensor classes = Tensor.over(
                            "classes",
                            DataType.BYTES,
                            Shape.of(1, 2),
                            io.nereid.tensor.MemoryRegion.copyOf(text, 0, text.length),
                            0,
                            text.length);
                    return List.of(classes, scores);
                });
        assertThat(post("classify", "{\"examples\":[{\"x\":1.0}]}"))
                .isEqualTo("{\"results\":[[[\"a\",0.75],[\"bc\",0.25]]]}");
        assertThat(post("regress", "{\"examples\":[{\"x\":1.0}]}"))
                .contains("Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got [1,2]");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
        {}                                  | JSON Value: {} When method is classify, key 'examples' is expected and was not found
        {"examples":{}}                     | JSON Value: {"examples":{}} Expecting 'examples' value to be an list/array
        {"examples":[]}                     | JSON Value: {"examples":[]} 'examples' value is an empty array
        {"examples":[1]}                    | Example must be JSON object but got JSON Number
        {"examples":[{"x":1}],"context":[]} | Example must be JSON object but got JSON Array
        {"examples":[{"x":null}]}           | Feature: x has element with unexpected JSON type: Null
        {"examples":[{"x":[[1]]}]}          | Feature: x has element with unexpected JSON type: Array
        {"examples":[{"x":{"y":1}}]}        | Feature: x has element with unexpected JSON type: Object
        {"examples":[{"x":{"b64":"*"}}]}    | Unable to base64 decode
        {"examples":[{"x":[1,2.5]}]}        | Unexpected element type in feature: x expecting type: int64
        {"examples":[{"x":[1.5,2]}]}        | Unexpected element type in feature: x expecting type: float
        {"examples":[{"x":["a",2]}]}        | Unexpected element type in feature: x expecting type: bytes
        {"examples":[{"x":9223372036854775808}]} | Feature: x has uint64 element. Only int64 is supported.
        {"examples":[{"x":1}],"signature_name":"no"} | No signature was found with the name: no
        {"examples":[{"y":1}]}              | x
        """)
    void examplesThatAreNoneAreTheClientsFault(String body, String text) {
        FakeExchange x = client.call("POST", "/v1/models/half_plus_two:classify", body);
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text()).contains(text.replace("\"", "\\\""));
        assertThat(post("classify", "{\"examples\":[{\"x\":2.0}]}")).isEqualTo("{\"results\":[[[\"\",3.0]]]}");
    }

    @Test
    void damagedExamplesNeverBreakTheServer() {
        Random random = new Random(20261121);
        String whole = "{\"signature_name\":\"regress_x_to_y\",\"context\":{\"c\":[1,2]},"
                + "\"examples\":[{\"x\":1.5,\"s\":{\"b64\":\"aGk=\"}},{\"x\":[2],\"t\":true}]}";
        for (int i = 0; i < 10_000; i++) {
            StringBuilder body = new StringBuilder(whole);
            for (int n = random.nextInt(4); n >= 0; n--) {
                int at = random.nextInt(body.length());
                switch (random.nextInt(3)) {
                    case 0 -> body.deleteCharAt(at);
                    case 1 -> body.insert(at, "{}[]\",:0e-.tfn\\".charAt(random.nextInt(15)));
                    default -> body.setCharAt(at, (char) (32 + random.nextInt(95)));
                }
            }
            // an example without x is beyond what the fake model reads
            if (body.indexOf("\"x\":1") < 0 || body.indexOf("\"x\":[2") < 0) {
                continue;
            }
            FakeExchange x = client.call("POST", "/v1/models/half_plus_two:regress", body.toString());
            assertThat(x.status()).as("case %d: %s: %s", i, body, x.text()).isIn(200, 400);
        }
    }

    @Test
    void aServerThatChecksMethodsRejectsOtherSignatures() {
        FakeClient strict = new FakeClient(new V1Codec(
                engine,
                engine,
                Runnable::run,
                V1Options.builder(Clock.system()).methodCheck(true).build()));
        FakeExchange x = strict.call(
                "POST",
                "/v1/models/half_plus_two:classify",
                "{\"examples\":[{\"x\":2.0}],\"signature_name\":\"regress_x_to_y\"}");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text())
                .contains("Expected classification signature method_name to be tensorflow/serving/classify."
                        + " Was: tensorflow/serving/regress");
    }
}
