// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues.NonFinite;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonValuesTest {
    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static @Nullable Object read(String text) {
        return JsonValues.read(utf8(text));
    }

    private static @Nullable Object readDoubles(String text) {
        return JsonValues.readDoubles(utf8(text));
    }

    private static String written(@Nullable Object value, NonFinite nonFinite) {
        JsonWriter writer = new JsonWriter(16);
        JsonValues.write(writer, value, nonFinite);
        return new String(writer.array(), 0, writer.length(), StandardCharsets.UTF_8);
    }

    @Test
    void aDocumentBecomesPlainValuesAndIsWrittenBack() {
        String text = "{\"b\":[1,-9223372036854775808,1.5,1.0E300,\"ä\\n\",true,null,{}],\"a\":{\"c\":[]}}";
        Map<?, ?> tree = (Map<?, ?>) read(text);
        assertThat((Object) tree.get("b"))
                .isEqualTo(Arrays.asList(1L, Long.MIN_VALUE, 1.5, 1e300, "ä\n", true, null, Map.of()));
        assertThat(List.copyOf(tree.keySet())).isEqualTo(List.of("b", "a"));
        assertThat(read(written(tree, NonFinite.REFUSED))).isEqualTo(tree);
    }

    @Test
    void wholeNumbersAreLongsWhereTheyFit() {
        assertThat(read("9223372036854775807")).isEqualTo(Long.MAX_VALUE);
        assertThat(read("9223372036854775808")).isEqualTo(0x1p63);
        assertThat(read("[18446744073709551616, 2]")).isEqualTo(List.of(0x1p64, 2L));
        assertThat(read("1.0")).isEqualTo(1.0);
        assertThat(read("1e2")).isEqualTo(100.0);
    }

    @Test
    void arraysOfNumbersArePackedOnRequest() {
        assertThat((double[]) readDoubles("[1, 2.5, true, false, null, -0]"))
                .containsExactly(1, 2.5, 1, 0, Double.NaN, -0.0);
        assertThat((double[]) readDoubles("[]")).isEmpty();
        assertThat((double[]) readDoubles("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"))
                .hasSize(17)
                .contains(17);
        assertThat(readDoubles("[1, \"x\", 2, null]")).isEqualTo(Arrays.asList(1.0, "x", 2.0, null));
        assertThat(readDoubles("{\"a\": 1, \"b\": null}")).isEqualTo(mapOf("a", 1.0, "b", null));
        assertThat((List<?>) readDoubles("[[1],[2]]")).allMatch(row -> row instanceof double[]);
    }

    private static Map<String, @Nullable Object> mapOf(
            String first, @Nullable Object one, String second, @Nullable Object two) {
        Map<String, @Nullable Object> map = new java.util.HashMap<>();
        map.put(first, one);
        map.put(second, two);
        return map;
    }

    @Test
    void aValueWithinADocumentLeavesTheReaderBehindIt() {
        byte[] text = utf8("{\"a\": {\"b\": [1]}, \"c\": 2}");
        JsonReader reader = new JsonReader();
        reader.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
        reader.beginObject();
        assertThat(reader.nextField()).isTrue();
        assertThat(JsonValues.read(reader)).isEqualTo(Map.of("b", List.of(1L)));
        assertThat(reader.nextField()).isTrue();
        assertThat(reader.readInt()).isEqualTo(2);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "{", "[1,]", "{\"a\":1} 2", "tru", "{\"a\":1,\"a\":null}", "{\"a\":null,\"a\":1}", "1e999"})
    void otherTextIsRefused(String text) {
        for (boolean doubles : new boolean[] {false, true}) {
            assertThatThrownBy(() -> {
                        var unused = doubles ? readDoubles(text) : read(text);
                    })
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
        }
    }

    @Test
    void nestingIsLimited() {
        String deep = "[".repeat(101) + "]".repeat(101);
        assertThatThrownBy(() -> {
                    var unused = read(deep);
                })
                .hasMessageContaining("nesting depth exceeds maximum allowed (100)");
        assertThatThrownBy(() -> {
                    var unused = readDoubles(deep);
                })
                .hasMessageContaining("nesting depth exceeds maximum allowed (100)");
    }

    @Test
    void everyKindOfNumberTextAndListIsWritten() {
        assertThat(written(
                        Arrays.asList(
                                (byte) 1,
                                2.5f,
                                0.1,
                                new BigDecimal("1E+2"),
                                null,
                                new StringBuilder("x"),
                                new float[] {1},
                                new int[] {2},
                                new double[][] {{3}, {}},
                                new Object[] {true}),
                        NonFinite.REFUSED))
                .isEqualTo("[1,2.5,0.1,1E+2,null,\"x\",[1.0],[2],[[3.0],[]],[true]]");
    }

    @Test
    void whatJsonCannotRepresentIsRefusedOrNull() {
        for (Object odd : new Object[] {Double.NaN, Float.NEGATIVE_INFINITY, new double[] {Double.POSITIVE_INFINITY}}) {
            assertThatThrownBy(() -> written(List.of(odd), NonFinite.REFUSED)).hasMessageContaining("is not JSON");
            assertThat(written(List.of(odd), NonFinite.NULL)).contains("null");
        }
        assertThatThrownBy(() -> written(new Thread(), NonFinite.NULL))
                .hasMessageContaining("a java.lang.Thread is not JSON");
    }
}
