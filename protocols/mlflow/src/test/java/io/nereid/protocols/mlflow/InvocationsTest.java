// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.spi.ModelRef;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.transport.api.HttpRoute;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class InvocationsTest {
    private final EchoEngine engine = new EchoEngine();
    private final MlflowCodec codec = new MlflowCodec(engine, engine, Runnable::run, "1.2.3");

    private Exchange send(String template, Exchange x) {
        for (HttpRoute route : codec.httpRoutes()) {
            if (route.template().equals(template)) {
                route.handler().handle(x);
                return x;
            }
        }
        throw new AssertionError(template);
    }

    private Exchange post(String body) {
        return send("/invocations", new Exchange("application/json", body, Map.of(), List.of()));
    }

    private Exchange csv(String body) {
        return send("/invocations", new Exchange("text/csv; charset=utf-8", body, Map.of(), List.of()));
    }

    private String predictions(String body) {
        Exchange x = post(body);
        assertThat(x.text()).startsWith("{\"predictions\":");
        assertThat(x.status()).isEqualTo(200);
        return x.text().substring("{\"predictions\":".length(), x.text().length() - 1);
    }

    private void matrix(String features) {
        engine.with("m", features, new TensorSpec("input-0", DataType.FP64, Shape.of(-1, 3)));
    }

    private void columns() {
        engine.with(
                "m",
                "age,city",
                new TensorSpec("age", DataType.INT64, Shape.of(-1)),
                new TensorSpec("city", DataType.BYTES, Shape.of(-1)),
                new TensorSpec("height", DataType.FP64, Shape.of(-1), true));
    }

    @Test
    void aSplitFrameIsLaidSideBySideInTheModelsOrder() {
        matrix("a,b,c");
        assertThat(
                        predictions(
                                "{\"dataframe_split\":{\"index\":[0,1],\"data\":[[3,1,2],[6,4,5]],\"columns\":[\"c\",\"a\",\"b\"]}}"))
                .isEqualTo("[[1.0,2.0,3.0],[4.0,5.0,6.0]]");
    }

    @Test
    void aSplitFrameOfUnknownColumnsKeepsItsOrder() {
        matrix("");
        assertThat(predictions("{\"dataframe_split\":{\"columns\":[\"x\",\"y\",\"z\"],\"data\":[[3,1,2]]}}"))
                .isEqualTo("[[3.0,1.0,2.0]]");
        assertThat(predictions("{\"dataframe_split\":{\"data\":[[3,1,2]]}}")).isEqualTo("[[3.0,1.0,2.0]]");
    }

    @Test
    void recordsMayHaveTheirKeysInAnyOrderAndLackSome() {
        columns();
        assertThat(predictions("{\"dataframe_records\":[{\"age\":3,\"city\":\"Bern\",\"height\":1.5},"
                        + "{\"city\":\"Ä\",\"age\":4,\"more\":[1,{}]}]}"))
                .isEqualTo("[{\"age\":3,\"city\":\"Bern\",\"height\":1.5},{\"age\":4,\"city\":\"Ä\",\"height\":NaN}]");
    }

    @Test
    void anAbsentOptionalColumnIsLeftOut() {
        columns();
        assertThat(predictions("{\"dataframe_split\":{\"columns\":[\"city\",\"age\"],\"data\":[[\"x\",1]]}}"))
                .isEqualTo("[{\"age\":1,\"city\":\"x\"}]");
    }

    @Test
    void nullsAreMissingValues() {
        matrix("a,b,c");
        assertThat(predictions("{\"dataframe_split\":{\"columns\":[\"a\",\"b\",\"c\"],\"data\":[[1,null,3]]}}"))
                .isEqualTo("[[1.0,NaN,3.0]]");
        columns();
        Exchange x = post("{\"dataframe_split\":{\"columns\":[\"age\",\"city\"],\"data\":[[null,\"x\"]]}}");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text()).contains("column 'age' has no value in row 0 (expected: INT64");
    }

    @Test
    void instancesAreRowsOfValuesOrOfNames() {
        matrix("a,b,c");
        assertThat(predictions("{\"instances\":[[1,2,3],[4,5,6]]}")).isEqualTo("[[1.0,2.0,3.0],[4.0,5.0,6.0]]");
        assertThat(predictions("{\"instances\":[{\"c\":3,\"a\":1,\"b\":2}]}")).isEqualTo("[[1.0,2.0,3.0]]");
        columns();
        assertThat(predictions("{\"instances\":[[1,\"x\",0.5],[2,\"y\",1.5]]}"))
                .isEqualTo("{\"age\":[1,2],\"city\":[\"x\",\"y\"],\"height\":[0.5,1.5]}");
    }

    @Test
    void inputsAreAnArrayOrNamedArrays() {
        matrix("a,b,c");
        assertThat(predictions("{\"inputs\":[[1,2,3]]}")).isEqualTo("[[1.0,2.0,3.0]]");
        assertThat(predictions("{\"inputs\":{\"input-0\":[[1,2,3]]}}")).isEqualTo("[[1.0,2.0,3.0]]");
        assertThat(predictions("{\"inputs\":{\"c\":[3,6],\"a\":[1,4],\"b\":[2,5]}}"))
                .isEqualTo("[[1.0,2.0,3.0],[4.0,5.0,6.0]]");
        columns();
        assertThat(predictions("{\"inputs\":{\"city\":[\"x\"],\"age\":[7]},\"params\":{}}"))
                .isEqualTo("{\"age\":[7],\"city\":[\"x\"]}");
    }

    @Test
    void arraysMayBeCellsOfAFrame() {
        engine.with("m", "", new TensorSpec("image", DataType.FP32, Shape.of(-1, 2, 2)));
        assertThat(predictions("{\"dataframe_records\":[{\"image\":[[1,2],[3,4]]},{\"image\":[[5,6],[7,8]]}]}"))
                .isEqualTo("[[[1.0,2.0],[3.0,4.0]],[[5.0,6.0],[7.0,8.0]]]");
        assertThat(post("{\"dataframe_records\":[{\"image\":[[1,2],[3,4]]},{\"image\":[1]}]}")
                        .text())
                .contains("column 'image' has a value of shape [1] in row 1 (expected: [2, 2])");
    }

    @Test
    void tablesMayBeCommaSeparated() {
        columns();
        assertThat(csv("city,age,height\n\"Chur, GR\",5,\r\n\"say \"\"hi\"\"\",6,1.25\n")
                        .text())
                .isEqualTo("{\"predictions\":[{\"age\":5,\"city\":\"Chur, GR\",\"height\":NaN},"
                        + "{\"age\":6,\"city\":\"say \\\"hi\\\"\",\"height\":1.25}]}");
        assertThat(csv("\uFEFFcity,age,height\n\n\"Bern\"e,5,1\n\r\n\"\",6,").text())
                .isEqualTo("{\"predictions\":[{\"age\":5,\"city\":\"Berne\",\"height\":1.0},"
                        + "{\"age\":6,\"city\":\"\",\"height\":NaN}]}");
        assertThat(csv("city,age,height\n\"Bern,5,1\n").text()).contains("the table ends within a quoted cell");
        assertThat(csv("").text()).contains("the table has 0 lines");
        assertThat(csv("city,age\n").text()).contains("the table has 1 lines");
        assertThat(csv("city,age\nBern,old\n").text()).contains("column 'age' is 'old' in row 0 (expected: INT64)");
        assertThat(csv("city,age\n").status()).isEqualTo(400);
        assertThat(csv("city,age\nBern\n").text()).contains("row 0 has 1 cells (expected: 2");
    }

    @Test
    void missingColumnsAreNamedInMlflowsWords() {
        matrix("a,b,c");
        Exchange x = post("{\"dataframe_split\":{\"columns\":[\"a\",\"z\"],\"data\":[[1,2]]}}");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text())
                .startsWith("{\"error_code\": \"BAD_REQUEST\", \"message\": \"Model is missing inputs [b, c]");
        columns();
        assertThat(post("{\"inputs\":{\"age\":[1]}}").text()).contains("Model is missing inputs [city]");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "[1]",
                "3",
                "{\"a\":",
                "{}",
                "{\"instances\":[[1,2,3]],\"inputs\":[[1,2,3]]}",
                "{\"dataframe_split\":{\"columns\":[\"a\"]}}",
                "{\"dataframe_split\":{\"columns\":[\"a\",\"b\",\"c\"],\"data\":[[1,2]]}}",
                "{\"dataframe_split\":{\"columns\":[\"a\",\"b\",\"c\"],\"data\":[[1,2,3,4]]}}",
                "{\"dataframe_split\":{\"columns\":[\"a\",\"b\",\"c\"],\"data\":[[1,2,\"x\"]]}}",
                "{\"dataframe_split\":{\"columns\":[\"a\",\"b\",\"c\"],\"data\":[]}}",
                "{\"dataframe_split\":[]}",
                "{\"dataframe_records\":[]}",
                "{\"dataframe_records\":{}}",
                "{\"dataframe_records\":[{\"a\":1,\"a\":2,\"b\":1,\"c\":1}]}",
                "{\"inputs\":{\"a\":[1],\"b\":[1,2],\"c\":[3]}}",
                "{\"inputs\":[[1,2,3]],\"params\":{\"temperature\":1}}",
                "{\"inputs\":[[1,2],[3]]}"
            })
    void malformedRequestsAreTheClientsFault(String body) {
        matrix("a,b,c");
        Exchange x = post(body);
        assertThat(x.status()).as(x.text()).isEqualTo(400);
        assertThat(x.text()).startsWith("{\"error_code\": \"BAD_REQUEST\"");
        assertThat(engine.asked).isEmpty();
    }

    @Test
    void otherContentTypesAreRejectedAsByMlflow() {
        matrix("");
        Exchange parquet = new Exchange("application/vnd.apache.parquet", "x", Map.of(), List.of());
        assertThat(send("/invocations", parquet).status()).isEqualTo(415);
        Exchange latin = new Exchange("application/json; charset=latin-1", "x", Map.of(), List.of());
        assertThat(send("/invocations", latin).text()).isEqualTo("The scoring server only supports UTF-8");
    }

    @Test
    void theOnlyModelNeedsNoName() {
        matrix("");
        predictions("{\"inputs\":[[1,2,3]]}");
        engine.with("other", "", new TensorSpec("x", DataType.FP32, Shape.of(-1)));
        Exchange ambiguous = post("{\"inputs\":[1]}");
        assertThat(ambiguous.status()).isEqualTo(400);
        assertThat(ambiguous.text()).contains("there are 2 models").contains("/invocations?model=NAME", "m, other");
        send("/invocations", new Exchange("application/json", "{\"inputs\":[1]}", Map.of("model", "other"), List.of()));
        send(
                "/models/{model}/versions/{version}/invocations",
                new Exchange("application/json", "{\"inputs\":[1]}", Map.of(), List.of("other", "1")));
        assertThat(engine.asked)
                .containsExactly(ModelRef.latest("m"), ModelRef.latest("other"), ModelRef.exact("other", 1));
    }

    @Test
    void aModelThatIsNotThereIsNotFound() {
        Exchange none = post("{\"inputs\":[1]}");
        assertThat(none.status()).isEqualTo(503);
        Exchange x = send(
                "/models/{model}/invocations",
                new Exchange("application/json", "{\"inputs\":[1]}", Map.of(), List.of("nobody")));
        assertThat(x.status()).isEqualTo(404);
        assertThat(x.text()).contains("RESOURCE_DOES_NOT_EXIST");
    }

    @Test
    void healthIsReadinessAndTheVersionIsReported() {
        Exchange healthy = send("/health", new Exchange("", "", Map.of(), List.of()));
        assertThat(healthy.status()).isEqualTo(200);
        assertThat(healthy.text()).isEqualTo("\n");
        engine.ready = false;
        assertThat(send("/ping", new Exchange("", "", Map.of(), List.of())).status())
                .isEqualTo(404);
        assertThat(send("/version", new Exchange("", "", Map.of(), List.of())).text())
                .isEqualTo("1.2.3");
    }
}
