// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ArrowInferTest {
    private static final Shape FOUR = Shape.of(-1, 4);

    private final FakeEngine engine = new FakeEngine();
    private final ArrayDeque<Runnable> pool = new ArrayDeque<>();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), pool::add, V2Options.defaults("1", 64 << 20));
    private long buffersBefore;

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private static FakeExchange post(String model, byte[] body) {
        return new FakeExchange("POST", "/v2/models/" + model + "/infer", body)
                .header("content-type", ArrowMediaType.STREAM);
    }

    private FakeExchange send(String model, String fixture, String accept) {
        FakeExchange exchange = post(model, ArrowFixtures.stream(fixture));
        return Wire.send(codec, accept.isEmpty() ? exchange : exchange.header("accept", accept));
    }

    private void model(String name, String features, TensorSpec... inputs) {
        List<TensorSpec> specs = List.of(inputs);
        ModelMetadata metadata = new ModelMetadata(
                new ServableId(name, 1),
                "test",
                specs,
                specs,
                0,
                features.isEmpty() ? Map.of() : Map.of("feature_names", features));
        engine.models.put(name, new FakeEngine.Model(1, FakeEngine::identity, metadata));
    }

    private static String outputs(FakeExchange exchange) {
        String text = exchange.text();
        assertThat(exchange.status).as(text).isEqualTo(200);
        return text.substring(text.indexOf("\"outputs\":") + 10);
    }

    @Test
    void columnsWithOtherNamesAreTheFeaturesOfTheOnlyInput() {
        assertThat(outputs(send("identity", "iris", "application/json")))
                .isEqualTo("[{\"name\":\"x\",\"shape\":[3,4],\"datatype\":\"FP32\",\"data\":["
                        + "5.099999904632568,3.5,1.399999976158142,0.20000000298023224,"
                        + "6.199999809265137,2.9000000953674316,4.300000190734863,1.2999999523162842,"
                        + "4.900000095367432,3.0,1.5,0.10000000149011612]}]}");
    }

    @Test
    void featuresThatTheModelKnowsAreMatchedByName() {
        model("forest", "petal width,petal length,sepal width,sepal length", new TensorSpec("x", DataType.FP64, FOUR));
        assertThat(outputs(send("forest", "iris", "application/json")))
                .contains("\"data\":[0.2,1.4,3.5,5.1,1.3,4.3,2.9,6.2,0.1,1.5,3.0,4.9]");
    }

    @Test
    void namesThatALibraryGeneratedSayNoMoreThanTheOrder() {
        model("booster", "Column_0,Column_1,Column_2,Column_3", new TensorSpec("x", DataType.FP64, FOUR));
        assertThat(outputs(send("booster", "iris", "application/json"))).contains("\"data\":[5.1,3.5,1.4,0.2,");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'sepal length,petal color'|the table has no column for the features [petal color] of model 'forest'",
                "'sepal length,sepal width,petal length'|the table has columns that are not features of model 'forest':"
                        + " [petal width]",
                "''|a table of 4 columns does not fit input 'x' of shape [-1,3] of model 'forest'",
            })
    void aTableOfOtherFeaturesIsRefused(String features, String message) {
        model("forest", features, new TensorSpec("x", DataType.FP64, Shape.of(-1, 3)));
        FakeExchange exchange = send("forest", "iris", "");
        assertThat(exchange.status).isEqualTo(400);
        assertThat(exchange.contentType).isEqualTo("application/json");
        assertThat(exchange.text()).startsWith("{\"error\":\"" + message);
    }

    @Test
    void columnsAreInputsByNameAndConvertedWhereTheyKeepTheirValue() {
        model(
                "many",
                "",
                new TensorSpec("a", DataType.INT8, Shape.of(-1, 1)),
                new TensorSpec("b", DataType.FP32, Shape.of(-1)),
                new TensorSpec("c", DataType.BOOL, Shape.of(-1)),
                new TensorSpec("d", DataType.FP64, Shape.of(-1)));
        assertThat(outputs(send("many", "mixed", "application/json")))
                .isEqualTo("[{\"name\":\"a\",\"shape\":[3,1],\"datatype\":\"INT8\",\"data\":[1,2,3]},"
                        + "{\"name\":\"b\",\"shape\":[3],\"datatype\":\"FP32\",\"data\":[0.5,Infinity,NaN]},"
                        + "{\"name\":\"c\",\"shape\":[3],\"datatype\":\"BOOL\",\"data\":[true,false,true]},"
                        + "{\"name\":\"d\",\"shape\":[3],\"datatype\":\"FP64\","
                        + "\"data\":[1.8446744073709552e19,0.0,7.0]}]}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "d|INT64|column 'd' has 18446744073709551615 in row 0, which INT64 cannot hold",
                "d|UINT8|column 'd' has 18446744073709551615 in row 0, which UINT8 cannot hold",
                "b|INT32|column 'b' has 0.5 in row 0, which INT32 cannot hold",
                "a|BOOL|column 'a' is of type int64, which does not convert to the BOOL of input 'a'",
                "a|BYTES|column 'a' is of type int64, which does not convert to the BYTES of input 'a'",
            })
    void aValueThatWouldChangeIsRefused(String column, DataType type, String message) {
        model("one", "", new TensorSpec(column, type, Shape.of(-1)));
        FakeExchange exchange = send("one", "mixed", "");
        assertThat(exchange.status).isEqualTo(400);
        assertThat(exchange.text()).startsWith("{\"error\":\"" + message);
    }

    @Test
    void wholeFloatsBecomeIntegers() {
        model("one", "", new TensorSpec("float64", DataType.UINT16, Shape.of(-1)));
        // the engine, not the codec, refuses the columns that are not inputs
        assertThat(outputs(send("one", "types", "application/json")))
                .contains("{\"name\":\"float64\",\"shape\":[3],\"datatype\":\"UINT16\",\"data\":[1,2,3]}");
    }

    @Test
    void textsBecomeAMatrix() {
        model("texts", "", new TensorSpec("t", DataType.BYTES, Shape.of(-1, -1)));
        assertThat(outputs(send("texts", "polars", "application/json")))
                .isEqualTo("[{\"name\":\"t\",\"shape\":[3,1],\"datatype\":\"BYTES\",\"data\":"
                        + "[\"short\",\"a text that is longer than a view\",\"\"]}]}");
    }

    @Test
    void theResponseIsAStreamThatIsARequestAgain() {
        FakeExchange exchange = send("identity", "iris", "");
        assertThat(exchange.status).isEqualTo(200);
        assertThat(exchange.contentType).isEqualTo(ArrowMediaType.STREAM);
        FakeExchange again = Wire.send(codec, post("identity", exchange.reply).header("accept", "application/json"));
        assertThat(outputs(again)).isEqualTo(outputs(send("identity", "iris", "application/json")));
    }

    @Test
    void optionsComeWithTheSchemaOrTheQuery() {
        model("identity", "", new TensorSpec("x", DataType.FP32, FOUR));
        engine.models.put(
                "two",
                new FakeEngine.Model(
                        1,
                        request -> {
                            Tensor x = request.inputs().get(0);
                            return List.of(x.retainAs("a", x.shape()), x.retainAs("b", x.shape()));
                        },
                        engine.models.get("identity").metadata()));
        FakeExchange exchange = send("two", "options", "");
        assertThat(engine.last.id()).isEqualTo("r-7");
        assertThat(engine.last.parameters()).isEqualTo(Map.of("note", "x"));
        assertThat(engine.last.options().priority()).isEqualTo(2);
        assertThat(names(exchange.reply)).containsExactly("b", "a");

        exchange = Wire.send(
                codec,
                post("two", ArrowFixtures.stream("iris"))
                        .query("id", "q")
                        .query("outputs", "[\"b\"]")
                        .query("parameters", "{\"n\":1.5}"));
        assertThat(engine.last.id()).isEqualTo("q");
        assertThat(engine.last.parameters()).isEqualTo(Map.of("n", 1.5));
        assertThat(names(exchange.reply)).containsExactly("b");

        exchange = Wire.send(codec, post("two", ArrowFixtures.stream("options")).query("id", "q"));
        assertThat(exchange.status).isEqualTo(400);
        assertThat(exchange.text()).contains("'id' is both a query parameter and a key of the schema's metadata");
    }

    private static List<String> names(byte[] stream) {
        MemoryRegion body = MemoryRegion.copyOf(stream, 0, stream.length);
        try {
            return ArrowStreamReader.read(body).columns().stream()
                    .map(c -> c.field().name())
                    .toList();
        } finally {
            body.release();
        }
    }

    @Test
    void outputsOfDifferentRowsAreNoTable() {
        engine.add(
                "uneven",
                1,
                request -> List.of(
                        Tensor.ofDoubles("a", DataType.FP32, Shape.of(2), new double[2]),
                        Tensor.ofDoubles("b", DataType.FP32, Shape.of(1, 3), new double[3])),
                new TensorSpec("x", DataType.FP32, FOUR));
        FakeExchange exchange = send("uneven", "iris", "");
        assertThat(exchange.status).isEqualTo(400);
        assertThat(exchange.text()).contains("the outputs are not columns of one table: 'a' has shape [2], 'b' [1,3]");
        assertThat(send("uneven", "iris", "application/json").status).isEqualTo(200);
    }

    @ParameterizedTest
    @CsvSource({
        "'', false, false",
        "*/*, false, false",
        "application/json, false, false",
        "application/vnd.apache.arrow.stream, false, true",
        "'application/vnd.apache.arrow.stream, */*;q=0.8', false, true",
        "'application/json, application/vnd.apache.arrow.stream', false, false",
        "'application/json;q=0.5, application/vnd.apache.arrow.stream', false, true",
        "'', true, true",
        "*/*, true, true",
        "text/html, true, true",
        "application/json, true, false",
        "APPLICATION/JSON; charset=utf-8, true, false",
        "'application/json, application/vnd.apache.arrow.stream', true, true",
        "'application/json, application/vnd.apache.arrow.stream;q=0.1', true, false",
        "'application/vnd.apache.arrow.stream;q=0, */*', true, false",
    })
    void theHeaderAcceptChoosesTheResponse(String accept, boolean stream, boolean respondsWithStream) {
        assertThat(ArrowMediaType.respondsWithStream(accept.isEmpty() ? null : accept, stream))
                .isEqualTo(respondsWithStream);
    }

    @Test
    void aRequestInJsonGetsAStreamWhenItAcceptsOne() {
        FakeExchange exchange = new FakeExchange(
                        "POST",
                        "/v2/models/identity/infer",
                        Wire.utf8(
                                "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]}]}"))
                .header("content-type", "application/json")
                .header("accept", ArrowMediaType.STREAM);
        Wire.send(codec, exchange);
        assertThat(exchange.status).isEqualTo(200);
        assertThat(exchange.contentType).isEqualTo(ArrowMediaType.STREAM);
        assertThat(names(exchange.reply)).containsExactly("x");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "application/vnd.apache.arrow.file",
                "application/x-arrow; charset=binary",
                "application/vnd.apache.parquet",
            })
    void formatsCloseToItAreUnsupportedMediaTypes(String type) {
        FakeExchange exchange = new FakeExchange("POST", "/v2/models/identity/infer", ArrowFixtures.read("file.arrow"))
                .header("content-type", type);
        Wire.send(codec, exchange);
        assertThat(exchange.status).isEqualTo(415);
        assertThat(exchange.text())
                .contains("is not supported (expected: application/vnd.apache.arrow.stream")
                .startsWith("{\"error\":");
    }

    @Test
    void theHeaderOfBinaryTensorsIsRefused() {
        FakeExchange exchange = Wire.send(
                codec, post("identity", ArrowFixtures.stream("iris")).header("inference-header-content-length", "0"));
        assertThat(exchange.status).isEqualTo(400);
        assertThat(exchange.text()).contains("does not apply to an Arrow stream");
    }

    @Test
    void anUnknownModelIsNotFound() {
        assertThat(send("none", "iris", "").status).isEqualTo(404);
    }

    @Test
    void aTimeOfTheRequestIsAParameterOfTheSchema() {
        FakeExchange exchange =
                Wire.send(codec, post("identity", ArrowFixtures.stream("iris")).header("nereid-timing", "true"));
        assertThat(exchange.status).isEqualTo(200);
        assertThat(exchange.replyHeader("server-timing")).isNotEmpty();
        MemoryRegion body = MemoryRegion.copyOf(exchange.reply, 0, exchange.reply.length);
        assertThat(ArrowStreamReader.read(body).metadata().get("parameters")).startsWith("{\"");
        body.release();
    }
}
