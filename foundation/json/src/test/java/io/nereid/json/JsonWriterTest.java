// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import static io.nereid.json.Documents.assertRefused;
import static io.nereid.json.Documents.direct;
import static io.nereid.json.Documents.print;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;

class JsonWriterTest {
    private static final long SEED = Long.getLong("nereid.seed", 20261121L);

    @Test
    void putsCommasWhereTheyBelong() {
        byte[] ready = "\"outputs\":".getBytes(StandardCharsets.US_ASCII);
        String json = print(w -> w.beginObject()
                .name("a")
                .value(1)
                .name("b")
                .beginArray()
                .value(true)
                .nullValue()
                .value("x")
                .beginArray()
                .endArray()
                .value(-5L)
                .endArray()
                .name(ready)
                .beginObject()
                .endObject()
                .name("c")
                .value(1.5)
                .name("d")
                .value(0.1f)
                .name("u")
                .unsignedValue(-1)
                .name("r")
                .rawValue("[1,2]")
                .endObject());
        assertThat(json)
                .isEqualTo("{\"a\":1,\"b\":[true,null,\"x\",[],-5],\"outputs\":{},\"c\":1.5,\"d\":0.1,"
                        + "\"u\":18446744073709551615,\"r\":[1,2]}");
    }

    @Test
    void startsAfreshAfterReset() {
        JsonWriter w = new JsonWriter(1);
        w.beginArray().value(1);
        w.reset();
        w.beginArray().value(2).endArray();
        assertThat(Documents.text(w)).isEqualTo("[2]");
    }

    @Test
    void escapesStrings() {
        assertThat(print(w -> w.value("a\"\\/\b\f\n\r\t\u0001\u001f\u007fé€😀")))
                .isEqualTo("\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\u007fé€😀\"");
        assertThat(print(w -> w.value("\ud800x\udc00"))).isEqualTo("\"\ufffdx\ufffd\"");
        assertThat(print(w -> w.value("\0".repeat(500)))).isEqualTo("\"" + "\\u0000".repeat(500) + "\"");
    }

    @Test
    void treatsMalformedBytesAsAsked() {
        byte[] bytes = {'a', '"', (byte) 0xC3, (byte) 0xA9, (byte) 0xFF, 'b', (byte) 0xE2, (byte) 0x82};
        assertThat(print(w -> w.value(bytes, 0, 4, BytesStyle.REJECT_MALFORMED)))
                .isEqualTo("\"a\\\"é\"");
        assertThat(print(w -> w.value(bytes, 0, 8, BytesStyle.REPLACE_MALFORMED)))
                .isEqualTo("\"a\\\"é\ufffdb\ufffd\ufffd\"");
        JsonWriter w = new JsonWriter(1);
        w.value(bytes, 4, 2, BytesStyle.VERBATIM);
        assertThat(java.util.Arrays.copyOf(w.array(), w.length())).containsExactly('"', 0xFF, 'b', '"');
        assertThat(print(x -> x.value(bytes, 0, 8, BytesStyle.BASE64)))
                .isEqualTo("{\"b64\":\"" + java.util.Base64.getEncoder().encodeToString(bytes) + "\"}");
        assertRefused(() -> print(x -> x.value(bytes, 0, 8, BytesStyle.REJECT_MALFORMED)))
                .hasMessageContaining("byte 0xff of a BYTES element is not valid UTF-8");
    }

    @Test
    void nestsByShape() {
        ByteBuffer b = direct(64);
        for (int i = 0; i < 12; i++) {
            b.put(4 + i, (byte) (i - 2));
        }
        JsonWriter w = new JsonWriter(1);
        assertThat(w.nestedArray(DataType.INT8, b, 4, new long[] {2, 3, 2}, 0)).isEqualTo(16);
        assertThat(Documents.text(w)).isEqualTo("[[[-2,-1],[0,1],[2,3]],[[4,5],[6,7],[8,9]]]");
        w.reset();
        assertThat(w.nestedArray(DataType.INT8, b, 4, new long[] {9, 2}, 1)).isEqualTo(6);
        assertThat(Documents.text(w)).isEqualTo("[-2,-1]");
        w.reset();
        w.beginArray();
        assertThat(w.nestedArray(DataType.UINT8, b, 4, new long[] {9}, 1)).isEqualTo(5);
        w.nestedArray(DataType.UINT8, b, 5, new long[] {2, 0}, 0);
        w.flatArray(DataType.UINT8, b, 5, 0);
        w.value(1).endArray();
        assertThat(Documents.text(w)).isEqualTo("[254,[[],[]],[],1]");
        assertThatThrownBy(() -> w.flatArray(DataType.FP64, b, 60, 1)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void printsStringTensors() {
        ByteSink sink = new ByteSink(1);
        for (String s : new String[] {"a", "", "é\n", "x".repeat(10_000)}) {
            byte[] utf8 = s.getBytes(StandardCharsets.UTF_8);
            sink.appendIntLE(utf8.length);
            sink.append(utf8, 0, utf8.length);
        }
        ByteBuffer b = direct(sink.length());
        sink.copyTo(b, 0);
        JsonWriter w = new JsonWriter(1);
        assertThat(w.nestedArray(DataType.BYTES, b, 0, new long[] {2, 2}, 0)).isEqualTo(b.limit());
        assertThat(Documents.text(w)).isEqualTo("[[\"a\",\"\"],[\"é\\n\",\"" + "x".repeat(10_000) + "\"]]");
        w.reset();
        w.bytesStyle(BytesStyle.BASE64).flatArray(DataType.BYTES, b, 0, 2);
        assertThat(Documents.text(w)).isEqualTo("[{\"b64\":\"YQ==\"},{\"b64\":\"\"}]");
        assertThatThrownBy(() -> w.flatArray(DataType.BYTES, b, 0, 5))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL));
        assertThatThrownBy(() -> w.flatArray(DataType.BYTES, b.putInt(0, -1), 0, 1))
                .hasMessageContaining("has length -1");
    }

    @Test
    void widensFloatsWhenAsked() {
        ByteBuffer b = direct(8).putFloat(0, 6.8f).putFloat(4, 2.8f);
        assertThat(print(w -> w.flatArray(DataType.FP32, b, 0, 2))).isEqualTo("[6.8,2.8]");
        assertThat(print(w -> w.floatStyle(FloatStyle.WIDENED).flatArray(DataType.FP32, b, 0, 2)))
                .isEqualTo("[6.800000190734863,2.799999952316284]");
        assertThat(print(w -> w.floatStyle(FloatStyle.WIDENED).value(6.8f))).isEqualTo("6.800000190734863");
    }

    @Test
    void everyTypeReadsBackWhatItPrints() {
        Random random = new Random(SEED);
        int n = 9_000;
        for (DataType type : DataType.values()) {
            if (!type.isFixedSize()) {
                continue;
            }
            ByteBuffer b = direct(n * type.size());
            for (int i = 0; i < b.limit(); i++) {
                b.put(i, (byte) (type == DataType.BOOL ? random.nextInt(2) : random.nextInt()));
            }
            String once = print(w -> w.nestedArray(type, b, 0, new long[] {30, 100, 3}, 0));
            ByteBuffer back = Documents.readTensor(type, once, n);
            String twice = print(w -> w.nestedArray(type, back, 0, new long[] {30, 100, 3}, 0));
            assertThat(twice).as("%s, seed %d", type, SEED).isEqualTo(once);
            if (!type.isFloatingPoint()) {
                assertThat(back).as("%s, seed %d", type, SEED).isEqualTo(b);
            }
        }
    }
}
