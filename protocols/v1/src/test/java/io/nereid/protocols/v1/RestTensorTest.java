// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.json.FloatStyle;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RestTensorTest {
    private final FakeEngine engine = new FakeEngine();
    private FakeClient client = client(V1Options.defaults(Clock.system()));

    private FakeClient client(V1Options options) {
        return new FakeClient(new V1Codec(engine, engine, Runnable::run, options));
    }

    private static TensorSpec any(String name, DataType type) {
        return new TensorSpec(name, type, Shape.SCALAR, false, false, null, true);
    }

    /** The output of a model of one type for an input. */
    private String echo(DataType type, String body) {
        engine.add("m", List.of(any("x", type)), List.of(any("y", type)));
        return client.call("POST", "/v1/models/m:predict", body).text();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
        FP32  | [1, 2.5, 3e2, -4]                  | [1.0,2.5,300.0,-4.0]
        FP32  | [0.2, 6.8, 1.0e-5]                 | [0.2,6.8,0.00001]
        FP32  | [1e39, -1e39, 1e-50]               | [Infinity,-Infinity,0.0]
        FP32  | [NaN, Infinity, -Infinity]         | [NaN,Infinity,-Infinity]
        FP32  | [16777217, 123456789]              | [16777216.0,123456790.0]
        FP64  | [0.1, 1e300, 9007199254740993]     | [0.1,1e300,9007199254740992.0]
        FP16  | [0.5, 2048]                       | [0.5,2048.0]
        BF16  | [0.5, 3]                           | [0.5,3.0]
        INT8  | [-128, 127]                        | [-128,127]
        INT16 | [-32768, 32767]                    | [-32768,32767]
        INT32 | [-2147483648, 2147483647]          | [-2147483648,2147483647]
        INT64 | [-9223372036854775808, 9223372036854775807] | [-9223372036854775808,9223372036854775807]
        UINT8 | [0, 255]                           | [0,255]
        UINT16 | [0, 65535]                        | [0,65535]
        UINT32 | [0, 4294967295]                   | [0,4294967295]
        UINT64 | [0, 18446744073709551615]         | [0,18446744073709551615]
        BOOL  | [true, false]                      | [true,false]
        BYTES | ["a", {"b64": "aGk="}, "", "\\u00e9"] | ["a","hi","","é"]
        FP32  | [[[1], [2]], [[3], [4]]]           | [[[1.0],[2.0]],[[3.0],[4.0]]]
        """)
    void valuesOfEveryTypeTravelBothWaysInRowsAndInColumns(DataType type, String values, String expected) {
        assertThat(echo(type, "{\"instances\":" + values + "}")).isEqualTo("{\"predictions\":" + expected + "}");
        assertThat(echo(type, "{\"inputs\":" + values + "}")).startsWith("{\"outputs\":[");
        assertThat(engine.shapes.get(0)).isEqualTo(engine.shapes.get(1));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
        INT8   | 128    | int8
        UINT8  | -1     | uint8
        INT32  | 2147483648 | int32
        INT64  | 9223372036854775808 | int64
        UINT64 | 18446744073709551616 | uint64
        INT32  | "1"    | int32
        BOOL   | "true" | bool
        BOOL   | 2      | bool
        BYTES  | true   | string
        FP64   | null   | double
        FP32   | {"a":1} | float
        """)
    void aValueOfAnotherKindIsNamedWithBothKinds(DataType type, String value, String expected) {
        engine.add("m", List.of(any("x", type)), List.of(any("y", type)));
        FakeExchange x = client.call("POST", "/v1/models/m:predict", "{\"inputs\":[" + value + "]}");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text())
                .contains("JSON Value: " + value.replace("\"", "\\\""))
                .contains("is not of expected type: " + expected);
    }

    @Test
    void aScalarIsAColumnOfNoDimensionsAndOfARowOne() {
        assertThat(echo(DataType.FP32, "{\"inputs\":5}")).isEqualTo("{\"outputs\":5.0}");
        assertThat(echo(DataType.FP32, "{\"instances\":[5]}")).isEqualTo("{\"predictions\":[5.0]}");
        assertThat(echo(DataType.BYTES, "{\"inputs\":{\"b64\":\"aGk=\"}}")).isEqualTo("{\"outputs\":\"hi\"}");
        assertThat(echo(DataType.BYTES, "{\"inputs\":{\"x\":{\"b64\":\"aGk=\"}}}"))
                .isEqualTo("{\"outputs\":\"hi\"}");
        assertThat(engine.shapes).containsExactly(Shape.SCALAR, Shape.of(1), Shape.SCALAR, Shape.SCALAR);
    }

    @Test
    void emptyListsAreDimensionsOfZero() {
        assertThat(echo(DataType.FP32, "{\"inputs\":[]}")).isEqualTo("{\"outputs\":[]}");
        assertThat(echo(DataType.FP32, "{\"instances\":[[],[]]}")).isEqualTo("{\"predictions\":[[],[]]}");
        assertThat(engine.shapes).containsExactly(Shape.of(0), Shape.of(2, 0));
    }

    @Test
    void namedRowsAreStackedInAnyOrderOfTheirKeys() {
        engine.add(
                "m",
                List.of(any("a", DataType.FP32), any("b", DataType.BYTES)),
                List.of(any("c", DataType.FP32), any("d_bytes", DataType.BYTES)));
        assertThat(client.call(
                                "POST",
                                "/v1/models/m:predict",
                                "{\"ignored\":{\"deep\":[1]},\"instances\":[{\"a\":[1,2],\"b\":\"x\"},"
                                        + "{\"b\":{\"b64\":\"aGk=\"},\"a\":[3,4]}]}")
                        .text())
                .isEqualTo("{\"predictions\":[{\"c\":[1.0,2.0],\"d_bytes\":{\"b64\":\"eA==\"}},"
                        + "{\"c\":[3.0,4.0],\"d_bytes\":{\"b64\":\"aGk=\"}}]}");
        assertThat(engine.shapes).containsExactly(Shape.of(2, 2), Shape.of(2));
    }

    @Test
    void furtherKeysOfColumnsAreIgnored() {
        assertThat(echo(DataType.FP32, "{\"inputs\":{\"x\":[1],\"more\":[[2]]}}"))
                .isEqualTo("{\"outputs\":[1.0]}");
        engine.add("m", List.of(any("x", DataType.FP32)), List.of(any("y", DataType.FP32)));
        assertThat(client.call("POST", "/v1/models/m:predict", "{\"inputs\":{\"xx\":[1]}}")
                        .text())
                .contains("Missing named input: x in 'inputs' object.")
                .contains("'xx' is not an input of the model");
    }

    @Test
    void anInputWithADefaultMayBeLeftOut() {
        engine.add(
                "m",
                List.of(any("a", DataType.FP32), new TensorSpec("b", DataType.FP32, Shape.of(-1), true)),
                List.of(any("c", DataType.FP32), any("d", DataType.FP32)));
        assertThat(client.call("POST", "/v1/models/m:predict", "{\"instances\":[{\"a\":1},{\"a\":2}]}")
                        .text())
                .isEqualTo("{\"predictions\":[1.0,2.0]}");
        assertThat(client.call("POST", "/v1/models/m:predict", "{\"instances\":[{\"a\":1},{\"a\":2,\"b\":3}]}")
                        .text())
                .contains("Failed to process element: 1 of 'instances' list.")
                .contains("keys must be equal to: a,b");
    }

    @Test
    void theSignatureOfTheBodyDecidesWhatIsReadAndAsked() {
        Signature pair = new Signature(
                Signature.PREDICT,
                List.of(any("p", DataType.INT32), any("q", DataType.INT32)),
                List.of(any("r", DataType.INT32)),
                Map.of());
        Signature one = new Signature(
                "another/method", List.of(any("x", DataType.FP32)), List.of(any("y", DataType.FP32)), Map.of());
        engine.add(
                new ModelMetadata(
                        new ServableId("s", 1),
                        "fake",
                        one.inputs(),
                        one.outputs(),
                        0,
                        Map.of(),
                        Map.of("serving_default", one, "pair", pair)),
                r -> List.of(r.inputs().get(0).retain()));
        FakeExchange x = client.call(
                "POST", "/v1/models/s:predict", "{\"instances\":[{\"p\":1,\"q\":2}],\"signature_name\":\"pair\"}");
        assertThat(x.text()).isEqualTo("{\"predictions\":[1]}");
        assertThat(engine.requests.get(0).options().signature()).isEqualTo("pair");
        client.call("POST", "/v1/models/s:predict", "{\"instances\":[1.5],\"signature_name\":\"serving_default\"}");
        assertThat(engine.requests.get(1).options().signature()).isEqualTo("serving_default");
        FakeExchange none =
                client.call("POST", "/v1/models/s:predict", "{\"instances\":[1.5],\"signature_name\":\"pairs\"}");
        assertThat(none.status()).isEqualTo(400);
        assertThat(none.text())
                .contains("Serving signature name: \\\"pairs\\\" not found in signature def")
                .contains("did you mean 'pair'");
        client = client(V1Options.builder(Clock.system()).methodCheck(true).build());
        assertThat(client.call("POST", "/v1/models/s:predict", "{\"instances\":[1.5]}")
                        .text())
                .contains("Expected prediction signature method_name to be one of {")
                .contains("Was: another/method");
    }

    @Test
    void rowsOfAnswersNeedOneBatchSize() {
        ModelMetadata metadata = new ModelMetadata(
                new ServableId("b", 1),
                "fake",
                List.of(any("x", DataType.FP32)),
                List.of(any("c", DataType.FP32), any("d", DataType.FP32)),
                0,
                Map.of());
        engine.add(metadata, r -> {
            Tensor t = r.inputs().get(0);
            return List.of(t.retainAs("c", Shape.of(2)), t.retainAs("d", Shape.of(1, 2)));
        });
        FakeExchange rows = client.call("POST", "/v1/models/b:predict", "{\"instances\":[1,2]}");
        assertThat(rows.status()).isEqualTo(400);
        assertThat(rows.text()).contains("Tensor name: d has inconsistent batch size: 1 expecting: 2");
        assertThat(client.call("POST", "/v1/models/b:predict", "{\"inputs\":[1,2]}")
                        .text())
                .isEqualTo("{\"outputs\":{\"c\":[1.0,2.0],\"d\":[[1.0,2.0]]}}");
        engine.add(metadata, r -> List.of(r.inputs().get(0).retainAs("c", Shape.SCALAR)));
        assertThat(client.call("POST", "/v1/models/b:predict", "{\"instances\":[1]}")
                        .text())
                .contains("Tensor name: c has no shape information");
        engine.add(metadata, r -> List.of());
        assertThat(client.call("POST", "/v1/models/b:predict", "{\"instances\":[1]}")
                        .text())
                .contains("Cannot convert empty tensor map to JSON");
        engine.add(metadata, r -> List.of(Tensor.allocate("c", DataType.FP32, Shape.of(0, 3))));
        assertThat(client.call("POST", "/v1/models/b:predict", "{\"instances\":[1]}")
                        .text())
                .isEqualTo("{\"predictions\":[]}");
    }

    @Test
    void textAfterTheBodyIsIgnoredIfConfigured() {
        assertThat(echo(DataType.FP32, "{\"inputs\":[1]} and more")).contains("JSON Parse error: ");
        client = client(V1Options.builder(Clock.system()).trailingText(true).build());
        assertThat(echo(DataType.FP32, "{\"inputs\":[1]} and more")).isEqualTo("{\"outputs\":[1.0]}");
    }

    @Test
    void floatsMayBePrintedAsTheDoublesTheyWidenTo() {
        assertThat(echo(DataType.FP32, "{\"inputs\":[6.8]}")).isEqualTo("{\"outputs\":[6.8]}");
        client = client(
                V1Options.builder(Clock.system()).floatStyle(FloatStyle.WIDENED).build());
        assertThat(echo(DataType.FP32, "{\"inputs\":[6.8]}")).isEqualTo("{\"outputs\":[6.800000190734863]}");
    }

    @Test
    void longValuesAreCutInMessages() {
        String text = echo(DataType.FP32, "{\"inputs\":[\"" + "x".repeat(10_000) + "\"]}");
        assertThat(text).contains("is not of expected type: float").hasSizeLessThan(700);
    }

    @Test
    void hundredsOfThousandsOfRowsAreReadAsOneArray() {
        StringBuilder body = new StringBuilder("{\"instances\":[");
        for (int i = 0; i < 200_000; i++) {
            body.append(i == 0 ? "[" : ",[").append(i).append(",0.5]");
        }
        String answer = echo(DataType.FP32, body + "]}");
        assertThat(engine.shapes).containsExactly(Shape.of(200_000, 2));
        assertThat(answer).startsWith("{\"predictions\":[[0.0,0.5],[1.0,0.5],").endsWith("[199999.0,0.5]]}");
    }

    @Test
    void aResponseOfABatchHasItsIdAsWithKServesBatcher() {
        engine.parameters = Map.of("batch_id", "7b1e", "other", 4L);
        assertThat(echo(DataType.INT32, "{\"instances\":[1,2]}"))
                .isEqualTo("{\"message\":\"\",\"batchId\":\"7b1e\",\"predictions\":[1,2]}");
        assertThat(echo(DataType.INT32, "{\"inputs\":[1,2]}"))
                .isEqualTo("{\"message\":\"\",\"batchId\":\"7b1e\",\"outputs\":[1,2]}");
        engine.parameters = Map.of("other", 4L);
        assertThat(echo(DataType.INT32, "{\"instances\":[1,2]}")).isEqualTo("{\"predictions\":[1,2]}");
    }
}
