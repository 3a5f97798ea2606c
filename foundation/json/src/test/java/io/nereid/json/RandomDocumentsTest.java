// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Random documents, valid and malformed, read by this module and by Jackson. */
class RandomDocumentsTest {
    private static final long SEED = Long.getLong("nereid.seed", 20261121L);
    private static final String[] FRAGMENTS = {
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "-",
        ".",
        "e",
        "E",
        "+",
        "0",
        "00",
        "1",
        "9",
        "\"a\":",
        "null",
        "true",
        "NaN",
        "Infinity",
        "\\u",
        "\\ud800",
        "\\udc00",
        "\\u00e9",
        " ",
        "\n",
        "\0",
        "\u0001",
        "1e400",
        "1e-400",
        "[[",
        "]]",
        "{}",
        "[]",
        "99999999999999999999",
        "0.1234567890123456789",
        "\"b64\"",
        "Zm9v"
    };

    /** What the other parser accepts: lone surrogates, and letters whose low byte is a hexadecimal digit. */
    private static final Pattern LENIENT_THERE = Pattern.compile("\\\\u([dD]|[0-9a-fA-F]{0,3}[^\\x00-\\x7F])");

    private final Random random = new Random(SEED);
    private final ObjectMapper jackson = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    private final JsonReader reader = new JsonReader();

    @Test
    void readsWhatAnotherParserReads() throws JsonProcessingException {
        for (int i = 0; i < 5_000; i++) {
            String json = document(4);
            JsonNode expected = jackson.readTree(json);
            assertThat(readTree(json.getBytes(StandardCharsets.UTF_8)))
                    .as("%s, seed %d", json, SEED)
                    .isEqualTo(expected);
        }
    }

    @Test
    void acceptsAndRejectsTheSameDocumentsAsJackson() {
        for (int i = 0; i < 60_000; i++) {
            byte[] json = mutate(document(3).getBytes(StandardCharsets.UTF_8));
            boolean accepted = accepts(json);
            String text = decode(json);
            if (text == null) {
                assertThat(accepted)
                        .as("%s, seed %d", Arrays.toString(json), SEED)
                        .isFalse();
            } else if (!LENIENT_THERE.matcher(text).find() && !text.contains("NaN") && !text.contains("Infinity")) {
                assertThat(accepted).as("%s, seed %d", text, SEED).isEqualTo(jacksonAccepts(text));
            }
        }
    }

    @Test
    void malformedTensorsAreRejectedWithoutOtherErrors() {
        TensorReader tensors = new TensorReader(reader, true);
        DataType[] types = DataType.values();
        ByteBuffer dst = Documents.direct(1 << 12);
        ByteSink sink = new ByteSink(64);
        int read = 0;
        for (int i = 0; i < 60_000; i++) {
            DataType type = types[random.nextInt(types.length)];
            byte[] json = mutate(array(type, 1 + random.nextInt(2)).getBytes(StandardCharsets.UTF_8));
            Documents.reset(reader, json);
            sink.reset();
            try {
                if (random.nextBoolean()) {
                    tensors.readNested(type, sink);
                    assertThat(type == DataType.BYTES || sink.length() == tensors.count() * type.size())
                            .isTrue();
                } else if (type == DataType.BYTES) {
                    tensors.readBytes(sink, random.nextInt(10));
                } else {
                    tensors.read(type, dst, random.nextInt(100), random.nextInt(10));
                }
                read++;
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e).hasMessageContaining("at byte offset ");
            } catch (RuntimeException e) {
                throw new AssertionError(new String(json, StandardCharsets.ISO_8859_1) + ", seed " + SEED, e);
            }
        }
        assertThat(read).isBetween(1_000, 50_000);
    }

    private boolean accepts(byte[] json) {
        Documents.reset(reader, json);
        boolean skipped = refusal(() -> {
            reader.skipValue();
            reader.expectEnd();
        });
        boolean walked = refusal(() -> readTree(json));
        // the walk converts numbers and strings, so it may also reject the range of a number
        assertThat(skipped || !walked).as("%s, seed %d", decode(json), SEED).isTrue();
        return skipped;
    }

    private boolean refusal(Runnable reading) {
        try {
            reading.run();
            return true;
        } catch (ServingException e) {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            return false;
        }
    }

    private boolean jacksonAccepts(String text) {
        try {
            return !jackson.readTree(text).isMissingNode();
        } catch (JsonProcessingException e) {
            return false;
        }
    }

    private static String decode(byte[] json) {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(json))
                    .toString();
        } catch (CharacterCodingException e) {
            return null;
        }
    }

    private JsonNode readTree(byte[] json) {
        Documents.reset(reader, json);
        JsonNode tree = readNode();
        reader.expectEnd();
        return tree;
    }

    private JsonNode readNode() {
        JsonNodeFactory f = JsonNodeFactory.instance;
        switch (reader.peek()) {
            case OBJECT:
                ObjectNode object = f.objectNode();
                reader.beginObject();
                while (reader.nextField()) {
                    String key = reader.key();
                    object.set(key, readNode());
                }
                return object;
            case ARRAY:
                var array = f.arrayNode();
                reader.beginArray();
                while (reader.hasNext()) {
                    array.add(readNode());
                }
                return array;
            case STRING:
                return f.textNode(reader.readString());
            case NUMBER:
                if (!reader.isIntegral()) {
                    return f.numberNode(reader.readDouble());
                }
                long v = reader.readLong();
                return (int) v == v ? f.numberNode((int) v) : f.numberNode(v);
            case BOOLEAN:
                return f.booleanNode(reader.readBoolean());
            case NULL:
                reader.readNull();
                return f.nullNode();
            default:
                // refuses, whatever it is
                reader.readNull();
                throw new AssertionError("a bracket was read as null");
        }
    }

    private String document(int depth) {
        StringBuilder b = new StringBuilder();
        value(b, depth);
        return b.toString();
    }

    private void value(StringBuilder b, int depth) {
        space(b);
        switch (depth == 0 ? random.nextInt(5) : random.nextInt(8)) {
            case 0 -> b.append(random.nextBoolean() ? "true" : "false");
            case 1 -> b.append("null");
            case 2 -> b.append(random.nextLong() >> random.nextInt(64));
            case 3 -> b.append(random.nextInt(3) == 0 ? random.nextGaussian() * 1e-9 : random.nextDouble());
            case 4 -> string(b);
            case 5, 6 -> {
                b.append('{');
                for (int i = random.nextInt(5); i > 0; i--) {
                    space(b);
                    string(b);
                    space(b);
                    b.append(':');
                    value(b, depth - 1);
                    b.append(i == 1 ? "" : ",");
                }
                b.append('}');
            }
            default -> {
                b.append('[');
                for (int i = random.nextInt(5); i > 0; i--) {
                    value(b, depth - 1);
                    b.append(i == 1 ? "" : ",");
                }
                b.append(']');
            }
        }
        space(b);
    }

    private void space(StringBuilder b) {
        if (random.nextInt(4) == 0) {
            b.append(" \n\r\t".charAt(random.nextInt(4)));
        }
    }

    private void string(StringBuilder b) {
        b.append('"');
        for (int n = random.nextInt(random.nextInt(4) == 0 ? 40 : 6); n > 0; n--) {
            switch (random.nextInt(12)) {
                case 0 -> b.append('\\').append("\\/bfnrt\"".charAt(random.nextInt(8)));
                case 1 -> b.append(String.format(Locale.ROOT, "\\u%04x", random.nextInt(0xD800)));
                case 2 -> b.append("\\ud83d\\uDE00");
                case 3 -> b.append((char) (0x80 + random.nextInt(0x700)));
                case 4 -> b.append((char) (0x800 + random.nextInt(0xC000)));
                case 5 -> b.appendCodePoint(0x10000 + random.nextInt(0x10000));
                default -> b.append((char) ('a' + random.nextInt(26)));
            }
        }
        b.append('"');
    }

    private String array(DataType type, int depth) {
        StringBuilder b = new StringBuilder("[");
        for (int i = random.nextInt(6); i > 0; i--) {
            if (depth > 1 && random.nextInt(3) == 0) {
                b.append(array(type, depth - 1));
            } else if (type == DataType.BYTES) {
                string(b);
            } else if (type == DataType.BOOL) {
                b.append(random.nextBoolean());
            } else if (type.isFloatingPoint()) {
                b.append(random.nextGaussian() * Math.pow(10, random.nextInt(20) - 10));
            } else {
                b.append(random.nextInt(200));
            }
            b.append(i == 1 ? "" : ",");
        }
        return b.append(']').toString();
    }

    private byte[] mutate(byte[] json) {
        byte[] b = json;
        for (int n = random.nextInt(4); n > 0 && b.length > 0; n--) {
            int at = random.nextInt(b.length);
            switch (random.nextInt(5)) {
                case 0:
                    b = b.clone();
                    b[at] = (byte) random.nextInt();
                    break;
                case 1:
                    b = Arrays.copyOf(b, at);
                    break;
                case 2:
                    b = splice(b, at, Math.min(b.length, at + 1 + random.nextInt(4)), new byte[0]);
                    break;
                case 3:
                    b = splice(
                            b,
                            at,
                            Math.min(b.length, at + random.nextInt(2)),
                            FRAGMENTS[random.nextInt(FRAGMENTS.length)].getBytes(StandardCharsets.UTF_8));
                    break;
                default:
                    int end = Math.min(b.length, at + random.nextInt(20));
                    b = splice(b, at, at, Arrays.copyOfRange(b, at, end));
            }
        }
        return b;
    }

    private static byte[] splice(byte[] b, int from, int to, byte[] with) {
        byte[] result = new byte[b.length - (to - from) + with.length];
        System.arraycopy(b, 0, result, 0, from);
        System.arraycopy(with, 0, result, from, with.length);
        System.arraycopy(b, to, result, from + with.length, b.length - to);
        return result;
    }
}
