// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import static io.nereid.json.Documents.assertRefused;
import static io.nereid.json.Documents.reader;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonReaderTest {
    @Test
    void walksObjectsAndArrays() {
        JsonReader r =
                reader(" { \"id\" : \"a\\u00e9b\", \"n\":[1 , -2,3e2], \"t\":true,\"z\":null, \"e\":{}, \"f\":[] } ");
        List<String> seen = new ArrayList<>();
        r.beginObject();
        while (r.nextField()) {
            seen.add(r.key());
            if (r.keyEquals("id")) {
                assertThat(r.peek()).isEqualTo(JsonToken.STRING);
                assertThat(r.readString()).isEqualTo("aéb");
            } else if (r.keyEquals("n")) {
                r.beginArray();
                List<Long> values = new ArrayList<>();
                while (r.hasNext()) {
                    values.add(r.readLong());
                }
                assertThat(values).containsExactly(1L, -2L, 300L);
            } else if (r.keyEquals("t")) {
                assertThat(r.readBoolean()).isTrue();
            } else if (r.keyEquals("z")) {
                assertThat(r.tryNull()).isTrue();
            } else if (r.keyEquals("e")) {
                r.beginObject();
                assertThat(r.nextField()).isFalse();
            } else {
                r.beginArray();
                assertThat(r.hasNext()).isFalse();
            }
        }
        r.expectEnd();
        assertThat(seen).containsExactly("id", "n", "t", "z", "e", "f");
        assertThat(r.peek()).isEqualTo(JsonToken.END_OF_INPUT);
    }

    @Test
    void reportsTheKindOfEveryValue() {
        assertThat(reader("{").peek()).isEqualTo(JsonToken.OBJECT);
        assertThat(reader("[").peek()).isEqualTo(JsonToken.ARRAY);
        assertThat(reader("\"").peek()).isEqualTo(JsonToken.STRING);
        assertThat(reader(" -1").peek()).isEqualTo(JsonToken.NUMBER);
        assertThat(reader("NaN").peek()).isEqualTo(JsonToken.NUMBER);
        assertThat(reader("Infinity").peek()).isEqualTo(JsonToken.NUMBER);
        assertThat(reader("false").peek()).isEqualTo(JsonToken.BOOLEAN);
        assertThat(reader("null").peek()).isEqualTo(JsonToken.NULL);
        assertThat(reader("}").peek()).isEqualTo(JsonToken.END_OBJECT);
        assertThat(reader("]").peek()).isEqualTo(JsonToken.END_ARRAY);
        assertThat(reader(" ").peek()).isEqualTo(JsonToken.END_OF_INPUT);
        assertRefused(() -> reader("x").peek()).hasMessageContaining("character 'x' at byte offset 0");
    }

    @Test
    void comparesNamesWhateverTheirSpelling() {
        JsonReader r = reader("{\"inp\\u0075ts\":1,\"größe\":2,\"input\":3}");
        r.beginObject();
        r.nextField();
        assertThat(r.keyEquals("inputs")).isTrue();
        assertThat(r.keyEquals("input")).isFalse();
        assertThat(r.keyEquals("inputs2")).isFalse();
        assertThat(r.keyEquals("inputs".getBytes(StandardCharsets.UTF_8))).isTrue();
        r.skipValue();
        r.nextField();
        assertThat(r.keyEquals("größe")).isTrue();
        assertThat(r.keyEquals("grösse")).isFalse();
        assertThat(r.keyEquals("größe".getBytes(StandardCharsets.UTF_8))).isTrue();
        r.skipValue();
        r.nextField();
        assertThat(r.keyEquals("inputs")).isFalse();
        assertThat(r.readInt()).isEqualTo(3);
        assertThat(r.nextField()).isFalse();
    }

    @Test
    void comesBackToARememberedValue() {
        JsonReader r = reader("{\"data\":[[1,2],[3,{\"a\":\"b\"}]],\"shape\":[2]}");
        r.beginObject();
        assertThat(r.nextField()).isTrue();
        int data = r.position();
        r.skipValue();
        assertThat(r.nextField()).isTrue();
        assertThat(r.keyEquals("shape")).isTrue();
        r.skipValue();
        int after = r.position();
        r.seek(data);
        r.beginArray();
        assertThat(r.hasNext()).isTrue();
        r.skipValue();
        assertThat(r.hasNext()).isTrue();
        r.beginArray();
        assertThat(r.hasNext()).isTrue();
        assertThat(r.readInt()).isEqualTo(3);
        assertThat(r.hasNext()).isTrue();
        r.skipValue();
        assertThat(r.hasNext()).isFalse();
        assertThat(r.hasNext()).isFalse();
        r.seek(after);
        assertThat(r.nextField()).isFalse();
        r.expectEnd();
        assertThatThrownBy(() -> r.seek(1000)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void givesTheRangeOfAToken() {
        byte[] json = "[ -1.50e3 ,2]                ".getBytes(StandardCharsets.UTF_8);
        JsonReader r = new JsonReader();
        r.reset(json, 0, 13);
        r.beginArray();
        r.hasNext();
        int from = r.position();
        r.skipValue();
        assertThat(new String(json, from, r.position() - from, StandardCharsets.UTF_8))
                .isEqualTo("-1.50e3");
    }

    @Test
    void readsADocumentInTheMiddleOfAnArrayAndSparesWhatIsBehindTheSlack() {
        byte[] json = ("garbage" + "[12]" + "x".repeat(20)).getBytes(StandardCharsets.UTF_8);
        JsonReader r = new JsonReader();
        r.reset(json, 7, 11);
        r.beginArray();
        assertThat(r.hasNext()).isTrue();
        assertThat(r.readLong()).isEqualTo(12);
        assertThat(r.hasNext()).isFalse();
        r.expectEnd();
        assertThat(json[11 + JsonReader.SLACK]).isEqualTo((byte) 'x');
        assertThatThrownBy(() -> r.reset(new byte[20], 0, 5))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("15 bytes behind the document");
    }

    @Test
    void readsStringsOfEveryKind() {
        assertThat(reader("\"\"").readString()).isEmpty();
        assertThat(reader("\"0123456789abcdef\"").readString()).isEqualTo("0123456789abcdef");
        assertThat(reader("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"").readString()).isEqualTo("a\"\\/\b\f\n\r\tz");
        assertThat(reader("\"\\u0000\\u0041\\uD83D\\ude00é€😀\"").readString()).isEqualTo("\0A😀é€😀");
        JsonReader r = reader("[\"FP32\",\"x\\ty\"]");
        r.beginArray();
        r.hasNext();
        r.readText();
        assertThat(r.textEquals("FP32")).isTrue();
        assertThat(r.textEquals("FP64")).isFalse();
        assertThat(r.textLength()).isEqualTo(4);
        r.hasNext();
        ByteSink sink = new ByteSink(1);
        assertThat(r.readStringBytes(sink)).isEqualTo(3);
        assertThat(new String(sink.array(), 0, sink.length(), StandardCharsets.UTF_8))
                .isEqualTo("x\ty");
    }

    @Test
    void decodesBase64WithAndWithoutPadding() {
        for (String text : new String[] {"", "Zg==", "Zg", "Zm8=", "Zm8", "Zm9v", "Zm9vYmE=", "+/+/"}) {
            ByteSink sink = new ByteSink(1);
            int n = reader("\"" + text.replace("/", "\\/") + "\"").readBase64(sink);
            byte[] expected = java.util.Base64.getDecoder().decode(text);
            assertThat(n).isEqualTo(expected.length);
            assertThat(java.util.Arrays.copyOf(sink.array(), sink.length())).isEqualTo(expected);
        }
        for (String text : new String[] {"Z", "Zm9v!", "Zg=a", "====", "Zg ==", "Zm9vY"}) {
            assertRefused(() -> reader("\"" + text + "\"").readBase64(new ByteSink(1)))
                    .hasMessageContaining("invalid base64 in the string at byte offset 0");
        }
    }

    @Test
    void looksAtNothingBehindTheTextOfBase64() {
        JsonReader r = reader("[\"\\u0041AAAAAAA\",\"\\u0041\"]");
        r.beginArray();
        r.hasNext();
        assertThat(r.readBase64(new ByteSink(1))).isEqualTo(6);
        r.hasNext();
        assertRefused(() -> r.readBase64(new ByteSink(1))).hasMessageContaining("invalid base64");
    }

    @Test
    void rejectsACommaBeforeTheEndOfAnArray() {
        JsonReader r = reader("[1,]");
        r.beginArray();
        assertThat(r.hasNext()).isTrue();
        r.readLong();
        assertRefused(r::hasNext).hasMessageContaining("expected: a value after ','");
    }

    @Test
    void readsNumbers() {
        assertThat(reader("9223372036854775807").readLong()).isEqualTo(Long.MAX_VALUE);
        assertThat(reader("-9223372036854775808").readLong()).isEqualTo(Long.MIN_VALUE);
        assertThat(reader("18446744073709551615").readUnsignedLong()).isEqualTo(-1L);
        assertThat(reader("1.8446744073709551615e19").readUnsignedLong()).isEqualTo(-1L);
        assertThat(reader("-0").readLong()).isZero();
        assertThat(reader("0e999999999999").readLong()).isZero();
        assertThat(reader("0.00e5").readLong()).isZero();
        assertThat(reader("12.50e1").readLong()).isEqualTo(125);
        assertThat(reader("5.000").readInt()).isEqualTo(5);
        assertThat(reader("-2147483648").readInt()).isEqualTo(Integer.MIN_VALUE);
        assertThat(reader("1" + "0".repeat(900) + "e-900").readLong()).isEqualTo(1);
        assertThat(reader("-1.5E-3").readDouble()).isEqualTo(-1.5e-3);
        assertThat(reader("NaN").readDouble()).isNaN();
        assertThat(reader("-Infinity").readDouble()).isEqualTo(Double.NEGATIVE_INFINITY);
        assertThat(reader("Infinity").readFloat()).isEqualTo(Float.POSITIVE_INFINITY);
        assertThat(Double.doubleToRawLongBits(reader("-0.0").readDouble())).isEqualTo(Long.MIN_VALUE);
        assertThat(reader("12").isIntegral()).isTrue();
        assertThat(reader("12.0").isIntegral()).isFalse();
        assertThat(reader("1e2").isIntegral()).isFalse();
        assertThat(reader("\"1\"").isIntegral()).isFalse();
    }

    @Test
    void rejectsNumbersOutOfRange() {
        assertRefused(() -> reader("9223372036854775808").readLong())
                .hasMessage(
                        "value 9223372036854775808 at byte offset 0 is out of range for a 64-bit integer (expected: "
                                + "-9223372036854775808 to 9223372036854775807)");
        assertRefused(() -> reader("-9223372036854775809").readLong()).hasMessageContaining("out of range");
        assertRefused(() -> reader("18446744073709551616").readUnsignedLong()).hasMessageContaining("out of range");
        assertRefused(() -> reader("-1").readUnsignedLong()).hasMessageContaining("out of range");
        assertRefused(() -> reader("2147483648").readInt()).hasMessageContaining("out of range");
        assertRefused(() -> reader("1e1000000000").readLong()).hasMessageContaining("out of range");
        assertRefused(() -> reader("1.5").readLong())
                .hasMessageContaining("value 1.5")
                .hasMessageContaining("whole");
        assertRefused(() -> reader("1e-1000000000").readLong()).hasMessageContaining("whole");
        assertRefused(() -> reader("NaN").readLong()).hasMessageContaining("whole");
        assertRefused(() -> reader("1e309").readDouble()).hasMessageContaining("out of range for a double");
        assertRefused(() -> reader("-3.5e38").readFloat()).hasMessageContaining("out of range for a float");
        assertRefused(() -> reader("\"5\"").readDouble())
                .hasMessage("unexpected string at byte offset 0 (expected: a number)");
        assertRefused(() -> reader("null").readBoolean())
                .hasMessage("unexpected character 'n' at byte offset 0 (expected: true or false)");
    }

    @Test
    void limitsTheDepthOfNesting() {
        String deepest = "[".repeat(100) + "]".repeat(100);
        reader(deepest).skipValue();
        String tooDeep = "[".repeat(101) + "]".repeat(101);
        assertRefused(() -> reader(tooDeep).skipValue())
                .hasMessage("JSON nesting depth exceeds maximum allowed (100) at byte offset 100");
        assertRefused(() -> reader("{\"a\":".repeat(5000)).skipValue()).hasMessageContaining("depth exceeds");
        JsonReader shallow = new JsonReader(1);
        Documents.reset(shallow, "[[]]".getBytes(StandardCharsets.UTF_8));
        shallow.beginArray();
        assertThat(shallow.hasNext()).isTrue();
        assertRefused(shallow::beginArray).hasMessageContaining("(1) at byte offset 1");
    }

    @Test
    void namesTheContextOfAnError() {
        JsonReader r = reader("x");
        r.describe("input 'a'");
        assertRefused(r::readLong)
                .hasMessage("input 'a': unexpected character 'x' at byte offset 0 (expected: a number)");
        r.describe(null);
        assertRefused(r::readLong).hasMessageStartingWith("unexpected");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "[",
                "[1",
                "[1,",
                "[1,]",
                "[,1]",
                "[1 2]",
                "]",
                "{",
                "{\"a\"",
                "{\"a\":",
                "{\"a\":1",
                "{\"a\":1,",
                "{\"a\":1,}",
                "{,}",
                "{a:1}",
                "{'a':1}",
                "{\"a\" 1}",
                "{\"a\":1 \"b\":2}",
                "{1:2}",
                "{\"a\":}",
                "[1}",
                "{\"a\":1]",
                "01",
                "-01",
                "00",
                "-",
                "--1",
                "+1",
                ".5",
                "1.",
                "1.e5",
                "1e",
                "1e+",
                "1e-",
                "1E1.5",
                "0x10",
                "1_0",
                "-NaN",
                "nan",
                "Inf",
                "-Inf",
                "infinity",
                "Infinit",
                "NaNx",
                "tru",
                "True",
                "fals",
                "nul",
                "nulL",
                "truex",
                "1 1",
                "\"",
                "\"a",
                "\"\\",
                "\"\\x\"",
                "\"\\u12\"",
                "\"\\u123g\"",
                "\"\\ud800\"",
                "\"\\udc00\"",
                "\"\\ud800\\u0041\"",
                "\"\\ud800x\"",
                "\"\t\"",
                "\"\n\"",
                "\"\0\"",
                "\"\u001f\"",
                "[\"a\" \"b\"]",
                "//",
                "/**/1",
                "\ufeff1",
                "1\0",
                "\0",
                "\u00a01",
                "\f1",
                "{\"a\":1}}",
                "[1]]",
                "\"a\"\"b\""
            })
    void rejectsMalformedText(String json) {
        JsonReader r = reader(json);
        assertRefused(() -> {
                    r.skipValue();
                    r.expectEnd();
                })
                .hasMessageContaining("at byte offset");
    }

    @Test
    void refusesMalformedUtf8() {
        int[][] bad = {
            {0x80},
            {0xC0, 0x80},
            {0xC1, 0xBF},
            {0xC3},
            {0xC3, 0x28},
            {0xE0, 0x80, 0x80},
            {0xE2, 0x82},
            {0xED, 0xA0, 0x80},
            {0xF0, 0x80, 0x80, 0x80},
            {0xF0, 0x9F, 0x98},
            {0xF4, 0x90, 0x80, 0x80},
            {0xF5, 0x80, 0x80, 0x80},
            {0xFF}
        };
        for (int[] bytes : bad) {
            byte[] json = new byte[bytes.length + 3];
            json[0] = '"';
            json[1] = 'a';
            for (int i = 0; i < bytes.length; i++) {
                json[i + 2] = (byte) bytes[i];
            }
            json[json.length - 1] = '"';
            assertRefused(() -> reader(json).readString()).hasMessageContaining("is not valid UTF-8");
        }
    }

    @Test
    void looksAtTheFirstKeyOfAnObjectWithoutReadingIt() {
        JsonReader r = reader("[ {\"b\\u0036\":1,\"c\":2}, {}, [\"b6\"], \"b6\"]");
        r.beginArray();
        boolean[] expected = {true, false, false, false};
        for (boolean first : expected) {
            assertThat(r.hasNext()).isTrue();
            assertThat(r.firstKeyIs("b6")).isEqualTo(first);
            assertThat(r.firstKeyIs("c")).isFalse();
            r.skipValue();
        }
        assertThat(r.hasNext()).isFalse();
        r.expectEnd();
    }

    @Test
    void reportsWhereTheDocumentIsTruncated() {
        assertRefused(() -> reader("[\"abc").skipValue())
                .hasMessage("unexpected end of the document at byte offset 5 in the string that begins at byte offset 1"
                        + " (expected: a closing quote)");
        assertRefused(() -> reader("[1,2").skipValue())
                .hasMessage("unexpected end of the document at byte offset 4 (expected: ',' or ']')");
        assertRefused(() -> reader("{\"a\":1} x").expectEnd())
                .hasMessageContaining("expected: the end of the document");
    }
}
