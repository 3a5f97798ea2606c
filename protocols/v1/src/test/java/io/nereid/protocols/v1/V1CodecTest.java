// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class V1CodecTest {
    private final FakeEngine engine = new FakeEngine();
    private final FakeClient client =
            new FakeClient(new V1Codec(engine, engine, Runnable::run, V1Options.defaults(Clock.system())));

    @BeforeEach
    void models() {
        engine.add("one", specs("x", DataType.FP32), specs("y", DataType.FP32));
        engine.add(
                "two",
                List.of(
                        new TensorSpec("a", DataType.INT32, Shape.of(-1)),
                        new TensorSpec("b", DataType.INT32, Shape.of(-1, 2))),
                List.of(
                        new TensorSpec("c", DataType.INT32, Shape.of(-1)),
                        new TensorSpec("d", DataType.INT32, Shape.of(-1, 2))));
        engine.add("text", specs("x", DataType.BYTES), specs("y", DataType.BYTES));
        engine.add("blob", specs("x", DataType.BYTES), specs("y_bytes", DataType.BYTES));
        engine.addFailed("broken", "file is empty");
    }

    @Test
    void rowsOfOneInputGiveRowsOfOneOutput() {
        assertThat(predict("one", "{\"instances\":[[1,2.5],[3,4]]}"))
                .isEqualTo("{\"predictions\":[[1.0,2.5],[3.0,4.0]]}");
        assertThat(engine.shapes).containsExactly(Shape.of(2, 2));
    }

    @Test
    void rowsOfPlainValuesAreAVector() {
        assertThat(predict("one", "{\"instances\":[1,2,3]}")).isEqualTo("{\"predictions\":[1.0,2.0,3.0]}");
        assertThat(engine.shapes).containsExactly(Shape.of(3));
    }

    @Test
    void rowsOfNamedValuesGiveRowsOfNamedValues() {
        assertThat(predict("two", "{\"instances\":[{\"a\":1,\"b\":[2,3]},{\"b\":[5,6],\"a\":4}]}"))
                .isEqualTo("{\"predictions\":[{\"c\":1,\"d\":[2,3]},{\"c\":4,\"d\":[5,6]}]}");
    }

    @Test
    void columnsGiveColumns() {
        assertThat(predict("two", "{\"inputs\":{\"a\":[1,4],\"b\":[[2,3],[5,6]]}}"))
                .isEqualTo("{\"outputs\":{\"c\":[1,4],\"d\":[[2,3],[5,6]]}}");
        assertThat(predict("one", "{\"signature_name\":\"serving_default\",\"inputs\":[[1,2]]}"))
                .isEqualTo("{\"outputs\":[[1.0,2.0]]}");
    }

    @Test
    void base64IsBytesAndAnOutputNamedBytesIsBase64() {
        assertThat(predict("blob", "{\"instances\":[{\"b64\":\"/wAB\"},\"hi\"]}"))
                .isEqualTo("{\"predictions\":[{\"b64\":\"/wAB\"},{\"b64\":\"aGk=\"}]}");
        assertThat(predict("text", "{\"instances\":[{\"x\":\"é\"},{\"x\":{\"b64\":\"aGk=\"}}]}"))
                .isEqualTo("{\"predictions\":[\"é\",\"hi\"]}");
    }

    @Test
    void bytesThatAreNotTextAreRejectedWithARemedy() {
        FakeExchange x = post("text", ":predict", "{\"instances\":[{\"b64\":\"/w==\"}]}");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text())
                .contains("output 'y' holds bytes that are not UTF-8")
                .contains("V2 protocol");
    }

    @Test
    void notANumberTravelsBothWays() {
        assertThat(predict("one", "{\"instances\":[NaN,Infinity,-Infinity]}"))
                .isEqualTo("{\"predictions\":[NaN,Infinity,-Infinity]}");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
        one  | {"instances":[[1],[2,3]]}                       | Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: Expecting tensor size: 1 but got: 2
        one  | {"instances":[[[1],[2,3]]]}                     | Encountered list at unexpected size: 2 at level: 1 expected size: 1
        one  | {"instances":[[[1],2]]}                         | JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2
        one  | {"instances":[[1,[2]]]}                         | Encountered list at unexpected level: 1 expected < 1
        one  | {"instances":[[[1,2]],[[1],[2]]]}               | Expecting shape [1,2] but got: [2,1]
        one  | {"instances":5}                                 | Expected "instances" to be a list
        one  | {"foo":1}                                       | Missing 'inputs' or 'instances' key
        one  | {"instances":[1],"inputs":[1]}                  | JSON Value: {"instances":[1],"inputs":[1]} Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist
        one  | {"instances":[]}                                | No values in 'instances' array
        one  | {"instances":[1                                 | Unrecognized request format
        one  | nonsense                                        | Unrecognized request format: JSON Parse error:
        one  | {"instances":[1]}x                              | JSON Parse error: unexpected character 'x' at offset: 17
        one  | ``                                              | JSON Parse error: The document is empty
        one  | [1]                                             | JSON Value: [1] Is not object
        one  | {"instances":["text"]}                          | JSON Value: "text" Type: String is not of expected type: float
        one  | {"instances":[1,null]}                          | Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: null Type: Null is not of expected type: float
        one  | {"instances":[1,{"x":1}]}                       | Expecting value/list but got object at item 1 of input list
        one  | {"instances":[{"b64":"aGk="}]}                  | JSON Value: {"b64":"aGk="} Type: Object is not of expected type: float
        one  | {"inputs":[[1,true]]}                           | JSON Value: true Type: True is not of expected type: float
        one  | {"instances":[1],"signature_name":7}            | not formatted correctly. 'signature_name' key must be a string value.
        text | {"instances":[7]}                               | JSON Value: 7 Type: Number is not of expected type: string
        text | {"instances":[{"b64":"*"}]}                     | Unable to base64 decode
        text | {"inputs":[{"b65":"aGk="}]}                     | not formatted correctly for base64 data
        one  | {"instances":[1],"signature_name":"other"}      | Serving signature name: "other" not found in signature def
        two  | {"instances":[[1,2]]}                           | instances is a plain list, but expecting list of objects as multiple input tensors required as per tensorinfo_map
        two  | {"inputs":[[1,2]]}                              | inputs is a plain value/list, but expecting an object as multiple input tensors required as per tensorinfo_map
        two  | {"inputs":{"a":[1]}}                            | Missing named input: b in 'inputs' object.
        two  | {"instances":[{"a":1}]}                         | Failed to process element: 0 of 'instances' list. JSON object: {"a":1} keys must be equal to: a,b
        two  | {"instances":[{"a":1,"b":[1,2]},{"a":1}]}       | Missing named input: b
        two  | {"instances":[{"a":1,"b":[1,2],"cc":1}]}        | Failed to process element: 0 key: cc of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does not have named input: cc
        two  | {"instances":[{"a":1,"b":[1,2]},7]}             | Expecting object but got list at item 1 of input list
        two  | {"instances":[{"a":1,"b":[1,2]},{"a":1,"b":[1]}]} | Failed to process element: 1 key: b of 'instances' list. Error: INVALID_ARGUMENT: Expecting tensor size: 2 but got: 1
        two  | {"inputs":{"a":[1],"a":[2],"b":[[1,2]]}}        | input 'a' is given twice
        two  | {"instances":[{"a":300000000000,"b":[1,2]}]}    | JSON Value: 300000000000 Type: Number is not of expected type: int32 (input 'a'
        two  | {"instances":[{"a":1.5,"b":[1,2]}]}             | JSON Value: 1.5 Type: Number is not of expected type: int32
        """)
    void badBodiesAreTheClientsFault(String model, String body, String text) {
        FakeExchange x = post(model, ":predict", body);
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text())
                .contains(
                        HttpReply.quote(text).substring(1, HttpReply.quote(text).length() - 1));
        assertThat(predict("one", "{\"instances\":[1]}")).isEqualTo("{\"predictions\":[1.0]}");
    }

    @Test
    void outputsMayHaveNoRows() {
        List<TensorSpec> x = List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1)));
        List<TensorSpec> y = List.of(
                new TensorSpec("boxes", DataType.FP32, Shape.of(-1, 4)),
                new TensorSpec("names", DataType.BYTES, Shape.of(-1)));
        engine.add(
                new ModelMetadata(new ServableId("none", 1), "fake", x, y, 0, Map.of()),
                r -> List.of(
                        Tensor.allocate("boxes", DataType.FP32, Shape.of(0, 4)),
                        Tensor.ofBytes("names", Shape.of(0), new byte[0][])));
        assertThat(predict("none", "{\"instances\":[1]}")).isEqualTo("{\"predictions\":[]}");
        assertThat(predict("none", "{\"inputs\":[1]}")).isEqualTo("{\"outputs\":{\"boxes\":[],\"names\":[]}}");
        engine.add(
                new ModelMetadata(new ServableId("none", 1), "fake", x, y.subList(0, 1), 0, Map.of()),
                r -> List.of(Tensor.allocate("boxes", DataType.FP32, Shape.of(2, 0))));
        assertThat(predict("none", "{\"instances\":[1,2]}")).isEqualTo("{\"predictions\":[[],[]]}");
        assertThat(predict("none", "{\"inputs\":[1,2]}")).isEqualTo("{\"outputs\":[[],[]]}");
    }

    @Test
    void aMemberThatIsNotReadMayBeNestedDeeply() {
        String deep = "[".repeat(50_000) + "{\"a\":[]}" + "]".repeat(50_000);
        assertThat(predict("one", "{\"other\":" + deep + ",\"instances\":[1]}")).isEqualTo("{\"predictions\":[1.0]}");
        FakeExchange broken = post("one", ":predict", "{\"other\":" + deep.substring(1) + ",\"instances\":[1]}");
        assertThat(broken.status()).isEqualTo(400);
        FakeExchange read = post("one", ":predict", "{\"instances\":" + deep + "}");
        assertThat(read.status()).isEqualTo(400);
        assertThat(read.text()).contains("nesting depth");
    }

    @Test
    void statusCarriesTheKeysOfBothFamilies() {
        FakeExchange x = get("/v1/models/one");
        assertThat(x.status()).isEqualTo(200);
        assertThat(x.text())
                .isEqualTo("{\"name\":\"one\",\"ready\":true,\"model_version_status\":[{\"version\":\"3\","
                        + "\"state\":\"AVAILABLE\",\"status\":{\"error_code\":\"OK\",\"error_message\":\"\"}}]}");
        FakeExchange broken = get("/v1/models/broken");
        assertThat(broken.status()).isEqualTo(503);
        assertThat(broken.text())
                .contains("Model with name broken is not ready.")
                .contains("file is empty");
        assertThat(get("/v1/models/none").status()).isEqualTo(404);
        assertThat(get("/v1/models/none").text()).contains("Model with name none does not exist.");
        assertThat(get("/v1/models").text())
                .isEqualTo(
                        "{\"models\":[\"blob\",\"broken\",\"one\",\"text\",\"two\"],\"object\":\"list\",\"data\":[]}");
    }

    @Test
    void aModelThatIsNotReadyAnswers503AndAnUnknownOne404() {
        assertThat(post("broken", ":predict", "{\"instances\":[1]}").status()).isEqualTo(503);
        assertThat(post("none", ":predict", "{\"instances\":[1]}").status()).isEqualTo(404);
        FakeExchange version = post("one", "/versions/x:predict", "{\"instances\":[1]}");
        assertThat(version.status()).isEqualTo(400);
        assertThat(version.text())
                .contains("Malformed request: POST /v1/models/one/versions/x:predict")
                .contains("Failed to convert version: x to numeric.");
    }

    @Test
    void damagedBodiesNeverBreakTheServer() {
        long before = MemoryRegion.pooledBytes();
        long seed = 20261121;
        Random random = new Random(seed);
        String[] seeds = {
            "{\"instances\":[{\"a\":1,\"b\":[2,3]},{\"b\":[5,6],\"a\":4}]}",
            "{\"inputs\":{\"a\":[1,4],\"b\":[[2,3],[5,6]]}}",
            "{\"signature_name\":\"serving_default\",\"instances\":[[1,2]]}"
        };
        for (int i = 0; i < 20_000; i++) {
            StringBuilder body = new StringBuilder(seeds[random.nextInt(seeds.length)]);
            for (int n = random.nextInt(4); n >= 0; n--) {
                int at = random.nextInt(body.length());
                switch (random.nextInt(3)) {
                    case 0 -> body.deleteCharAt(at);
                    case 1 -> body.insert(at, "{}[]\",:0e-.tfn\\".charAt(random.nextInt(15)));
                    default -> body.setCharAt(at, (char) (32 + random.nextInt(95)));
                }
            }
            FakeExchange x = post("two", ":predict", body.toString());
            assertThat(x.status()).as("seed %d case %d: %s", seed, i, body).isIn(200, 400);
        }
        assertThat(MemoryRegion.pooledBytes() - before).isLessThan(64 << 20);
    }

    private static List<TensorSpec> specs(String name, DataType type) {
        return List.of(new TensorSpec(name, type, Shape.of(-1)));
    }

    private String predict(String model, String body) {
        FakeExchange x = post(model, ":predict", body);
        assertThat(x.status()).as(x.text()).isEqualTo(200);
        return x.text();
    }

    private FakeExchange post(String model, String rest, String body) {
        return client.call("POST", "/v1/models/" + model + rest, body);
    }

    private FakeExchange get(String path) {
        return client.call("GET", path, "");
    }
}
