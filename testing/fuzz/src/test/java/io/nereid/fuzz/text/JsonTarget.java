// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * The JSON reader against Jackson: text that is UTF-8 and not too deep is accepted by both or by neither, and has the same values;
 * what the writer makes of them is read as the same again. Confined to one thread.
 */
public final class JsonTarget implements FuzzTarget {
    private static final int DEEPEST = 90;

    /** Jackson takes an escaped half of a surrogate pair, which has no bytes in UTF-8. */
    private static final Pattern ESCAPED_SURROGATE = Pattern.compile("\\\\u[dD][89a-fA-F]");

    private static final JsonMapper JACKSON = JsonMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .build();

    @Override
    public void read(byte[] input) throws IOException {
        if (!comparable(input)) {
            try {
                JsonValues.read(input);
            } catch (ServingException e) {
                return;
            }
            return;
        }
        JsonNode expected = jackson(input);
        Object value;
        try {
            value = JsonValues.read(input);
        } catch (ServingException e) {
            if (expected != null
                    && !overflows(expected)
                    && !ESCAPED_SURROGATE
                            .matcher(new String(input, StandardCharsets.ISO_8859_1))
                            .find()) {
                throw new AssertionError("refused, and Jackson reads " + expected, e);
            }
            throw e;
        }
        if (expected == null) {
            throw new AssertionError("read as " + value + ", and Jackson refuses it");
        }
        same(expected, value);
        JsonWriter writer = new JsonWriter(64);
        JsonValues.write(writer, value, JsonValues.NonFinite.NULL);
        byte[] written = Arrays.copyOf(writer.array(), writer.length());
        JsonWriter again = new JsonWriter(64);
        JsonValues.write(again, JsonValues.read(written), JsonValues.NonFinite.NULL);
        if (!Arrays.equals(written, 0, written.length, again.array(), 0, again.length())) {
            throw new AssertionError(
                    "written as " + new String(written, StandardCharsets.UTF_8) + ", read and written again as "
                            + new String(again.array(), 0, again.length(), StandardCharsets.UTF_8));
        }
    }

    private static JsonNode jackson(byte[] input) {
        try {
            JsonNode read = JACKSON.readTree(input);
            return read == null || read.isMissingNode() ? null : read;
        } catch (IOException e) {
            return null;
        }
    }

    /** Whether both readers must agree: they have different limits of depth and number length, and different encodings. */
    private static boolean comparable(byte[] input) {
        int depth = 0;
        int digits = 0;
        for (byte b : input) {
            depth += b == '[' || b == '{' ? 1 : 0;
            digits = b >= '0' && b <= '9' || b == '.' ? digits + 1 : 0;
            if (b == 0 || depth > DEEPEST || digits > 400) {
                return false;
            }
        }
        // Jackson takes a byte order mark and a private spelling of infinity.
        String text = new String(input, StandardCharsets.ISO_8859_1);
        if (text.contains("INF") || text.contains("+") || text.startsWith("\u00ef\u00bb\u00bf")) {
            return false;
        }
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(input));
            return true;
        } catch (CharacterCodingException e) {
            return false;
        }
    }

    private static void same(JsonNode expected, Object value) {
        boolean equal = switch (expected.getNodeType()) {
            case OBJECT -> value instanceof Map<?, ?> map && sameMembers(expected, map);
            case ARRAY -> value instanceof List<?> list && sameItems(expected, list);
            case STRING -> expected.textValue().equals(value);
            case BOOLEAN -> Boolean.valueOf(expected.booleanValue()).equals(value);
            case NULL -> value == null;
            case NUMBER -> value instanceof Number number && sameNumber(expected, number);
            default -> false;
        };
        if (!equal) {
            throw new AssertionError("read as " + value + ", and Jackson reads " + expected);
        }
    }

    private static boolean sameNumber(JsonNode expected, Number number) {
        if (number instanceof Long whole) {
            return expected.isIntegralNumber()
                    && expected.bigIntegerValue().equals(java.math.BigInteger.valueOf(whole));
        }
        double wanted = expected.doubleValue();
        return wanted == number.doubleValue() || Double.isNaN(wanted) && Double.isNaN(number.doubleValue());
    }

    /** Whether a number is beyond the range of a double, which Jackson takes as infinite. */
    private static boolean overflows(JsonNode node) {
        if (node.isNumber()) {
            return Double.isInfinite(node.doubleValue());
        }
        for (JsonNode inner : node) {
            if (overflows(inner)) {
                return true;
            }
        }
        return false;
    }

    private static boolean sameMembers(JsonNode expected, Map<?, ?> map) {
        if (expected.size() != map.size()) {
            return false;
        }
        for (Map.Entry<String, JsonNode> field : expected.properties()) {
            if (!map.containsKey(field.getKey())) {
                return false;
            }
            same(field.getValue(), map.get(field.getKey()));
        }
        return true;
    }

    private static boolean sameItems(JsonNode expected, List<?> list) {
        if (expected.size() != list.size()) {
            return false;
        }
        for (int i = 0; i < list.size(); i++) {
            same(expected.get(i), list.get(i));
        }
        return true;
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                "{\"a\":[1,-2.5e3,0,1e-7,123456789012345678,1.7976931348623157e308],\"b\":{\"c\":null,\"d\":true}}",
                "[\"\\u00e9\\n\\ud83d\\ude00\",\"é\",NaN,Infinity,-Infinity,-0.0,[],{}]",
                " [ 18446744073709551615 , 4.9e-324 , 2.2250738585072011e-308, false ] ",
                "\"x\"",
                "0");
    }
}
