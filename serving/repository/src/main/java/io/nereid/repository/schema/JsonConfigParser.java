// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.schema;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.ConfigSchema.Cardinality;
import io.nereid.repository.schema.ConfigSchema.Field;
import io.nereid.repository.textformat.TextFormatException;
import io.nereid.repository.textformat.TextFormatNode;
import io.nereid.repository.textformat.TextFormatNode.Block;
import io.nereid.repository.textformat.TextFormatNode.Kind;
import io.nereid.repository.textformat.TextFormatNode.Scalar;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Parses the JSON form of a configuration (proto3's mapping, names in snake_case or camelCase) into the same syntax
 * tree as the text format, so that the later steps do not depend on the format. Values that do not fit the schema are
 * kept, so that {@link ConfigBinder} reports them. Confined to one thread.
 */
public final class JsonConfigParser {
    private static final int MAX_DEPTH = 50;
    private static final int LONGEST_NUMBER = 400;

    private final ConfigSchema schema;
    private final JsonReader reader = new JsonReader(MAX_DEPTH);
    private final byte[] bytes;
    private int counted;
    private int line = 1;
    private int column = 1;

    private JsonConfigParser(ConfigSchema schema, String json) {
        this.schema = schema;
        byte[] text = json.getBytes(StandardCharsets.UTF_8);
        bytes = new byte[text.length + JsonReader.SLACK];
        System.arraycopy(text, 0, bytes, 0, text.length);
        reader.reset(bytes, 0, text.length);
    }

    /**
     * Parses a whole document.
     *
     * @param into receives the fields; after an error, those that came before it
     */
    public static void parse(String json, ConfigSchema schema, List<TextFormatNode.Field> into)
            throws TextFormatException {
        JsonConfigParser tree = new JsonConfigParser(schema, json);
        try {
            tree.fields("ModelConfig", into);
            tree.reader.expectEnd();
        } catch (ServingException e) {
            throw new TextFormatException(
                    tree.here(), e.getMessage(), "give the configuration as one JSON object, as the server shows it");
        }
    }

    /** The reader's position. The reader only moves forward, so each byte is counted once. */
    private SourcePosition here() {
        int to = reader.position();
        for (; counted < to; counted++) {
            if (bytes[counted] == '\n') {
                line++;
                column = 1;
            } else if ((bytes[counted] & 0xC0) != 0x80) {
                column++;
            }
        }
        return new SourcePosition(line, column);
    }

    private void fields(String type, List<TextFormatNode.Field> into) {
        Map<String, Field> known = schema.fields(type);
        reader.beginObject();
        while (reader.nextField()) {
            String name = reader.key();
            SourcePosition at = here();
            Field field = known == null ? null : find(known, name);
            if (field != null && reader.tryNull()) {
                continue;
            }
            into.add(
                    field == null
                            ? new TextFormatNode.Field(name, true, false, List.of(ignored(at)), at)
                            : field(field, at));
        }
    }

    private static @Nullable Field find(Map<String, Field> known, String name) {
        Field field = known.get(name);
        if (field == null) {
            for (Field f : known.values()) {
                if (camelCase(f.name()).equals(name)) {
                    return f;
                }
            }
        }
        return field;
    }

    private static String camelCase(String name) {
        StringBuilder b = new StringBuilder(name.length());
        for (int i = 0; i < name.length(); i++) {
            boolean joint = name.charAt(i) == '_' && i + 1 < name.length();
            b.append(joint ? Character.toUpperCase(name.charAt(++i)) : name.charAt(i));
        }
        return b.toString();
    }

    private TextFormatNode ignored(SourcePosition at) {
        reader.skipValue();
        return new Scalar(Kind.WORD, "?", false, at);
    }

    private TextFormatNode.Field field(Field field, SourcePosition at) {
        List<TextFormatNode> values = new ArrayList<>();
        boolean list = true;
        switch (reader.peek()) {
            case OBJECT -> {
                if (field.cardinality() == Cardinality.MAP) {
                    entries(field, values);
                } else {
                    list = false;
                    values.add(value(field.type()));
                }
            }
            case ARRAY -> {
                elements(field.type(), values);
            }
            default -> {
                list = false;
                values.add(value(field.type()));
            }
        }
        return new TextFormatNode.Field(field.name(), true, list, values, at);
    }

    /** The elements of a list; those of lists in it become its own, as protobuf's parser reads them. */
    private void elements(String type, List<TextFormatNode> into) {
        reader.beginArray();
        while (reader.hasNext()) {
            if (reader.peek() == JsonToken.ARRAY) {
                elements(type, into);
            } else {
                into.add(value(type));
            }
        }
    }

    private void entries(Field field, List<TextFormatNode> into) {
        reader.beginObject();
        while (reader.nextField()) {
            String key = reader.key();
            SourcePosition at = here();
            TextFormatNode spelled =
                    field.keyType().equals("string") ? new Scalar(Kind.STRING, key, false, at) : number(key, true, at);
            into.add(new Block(
                    List.of(
                            new TextFormatNode.Field("key", true, false, List.of(spelled), at),
                            new TextFormatNode.Field("value", true, false, List.of(value(field.type())), at)),
                    at));
        }
    }

    private TextFormatNode value(String type) {
        // peek() skips white space, so that the position is the value's own.
        return switch (reader.peek()) {
            case OBJECT -> object(type, here());
            case STRING -> {
                SourcePosition at = here();
                yield string(reader.readString(), type, at);
            }
            case NUMBER -> {
                SourcePosition at = here();
                int from = reader.position();
                reader.skipValue();
                String text = new String(bytes, from, reader.position() - from, StandardCharsets.US_ASCII);
                Scalar number = number(text, isInteger(type) || schema.enumeration(type) != null, at);
                yield number.kind() == Kind.STRING && text.length() <= LONGEST_NUMBER
                        ? new Scalar(Kind.NUMBER, text, false, at)
                        : number;
            }
            case BOOLEAN -> {
                SourcePosition at = here();
                yield new Scalar(Kind.WORD, reader.readBoolean() ? "true" : "false", false, at);
            }
            default -> {
                SourcePosition at = here();
                int from = reader.position();
                reader.skipValue();
                yield new Scalar(Kind.WORD, bytes[from] == 'n' ? "null" : "[…]", false, at);
            }
        };
    }

    private TextFormatNode object(String type, SourcePosition at) {
        if (schema.fields(type) == null) {
            reader.skipValue();
            return new Block(List.of(), at);
        }
        List<TextFormatNode.Field> fields = new ArrayList<>();
        fields(type, fields);
        return new Block(fields, at);
    }

    /**
     * A JSON string: also an enumeration's name, a boolean in the spellings of protobuf's parser, a 64-bit number, or
     * NaN and Infinity, which are not strings in text format.
     */
    private TextFormatNode string(String text, String type, SourcePosition at) {
        List<String> names = schema.enumeration(type);
        if (names != null) {
            String upper = text.toUpperCase(Locale.ROOT);
            return new Scalar(Kind.WORD, names.contains(upper) ? upper : text, false, at);
        }
        if (isInteger(type) || type.equals("float") || type.equals("double")) {
            return number(text, isInteger(type), at);
        }
        if (type.equals("bool")) {
            return switch (text.toLowerCase(Locale.ROOT)) {
                case "true", "t", "yes", "y", "1" -> new Scalar(Kind.WORD, "true", false, at);
                case "false", "f", "no", "n", "0" -> new Scalar(Kind.WORD, "false", false, at);
                default -> new Scalar(Kind.STRING, text, false, at);
            };
        }
        return new Scalar(Kind.STRING, text, false, at);
    }

    private static boolean isInteger(String type) {
        return type.equals("int32") || type.equals("uint32") || type.equals("int64") || type.equals("uint64");
    }

    /** A number as in the text format: the sign apart, an integer without fraction and exponent. */
    private static Scalar number(String text, boolean whole, SourcePosition at) {
        boolean negative = text.startsWith("-");
        String digits = negative ? text.substring(1) : text;
        if (digits.equals("NaN") || digits.equals("Infinity")) {
            return new Scalar(Kind.WORD, digits, negative, at);
        }
        if (digits.length() > LONGEST_NUMBER || !digits.matches("[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?")) {
            return new Scalar(Kind.STRING, text, false, at);
        }
        if (!whole) {
            return new Scalar(Kind.NUMBER, digits, negative, at);
        }
        try {
            BigDecimal value = new BigDecimal(digits);
            // Such a number does not fit any field, and expanding its exponent would take long.
            if (value.signum() != 0 && (value.scale() < -30 || value.scale() > LONGEST_NUMBER)) {
                return new Scalar(Kind.STRING, text, false, at);
            }
            String integer =
                    value.signum() == 0 ? "0" : value.toBigIntegerExact().toString();
            return new Scalar(Kind.NUMBER, integer, negative, at);
        } catch (ArithmeticException | NumberFormatException e) {
            return new Scalar(Kind.STRING, text, false, at);
        }
    }
}
