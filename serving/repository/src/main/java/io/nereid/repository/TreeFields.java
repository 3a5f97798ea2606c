// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.repository.ConfigSchema.Cardinality;
import io.nereid.repository.ConfigSchema.Field;
import io.nereid.repository.TextValue.Block;
import io.nereid.repository.TextValue.Kind;
import io.nereid.repository.TextValue.Scalar;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Turns a document back into the tree that its text would give, so that the same rules can look at it. Immutable. */
final class TreeFields {
    private TreeFields() {}

    static List<TextValue.Field> of(Map<String, Object> document) {
        return fields("ModelConfig", document);
    }

    private static List<TextValue.Field> fields(String type, Map<?, ?> message) {
        List<TextValue.Field> fields = new ArrayList<>();
        Map<String, Field> known = ConfigSchema.MODEL_CONFIG.fields(type);
        message.forEach((name, value) -> {
            Field field = known == null ? null : known.get(name.toString());
            if (field != null) {
                fields.add(field(field, value));
            }
        });
        return fields;
    }

    private static TextValue.Field field(Field field, Object value) {
        List<TextValue> values = new ArrayList<>();
        boolean list = field.cardinality() != Cardinality.ONE;
        if (field.cardinality() == Cardinality.MAP && value instanceof Map<?, ?> map) {
            map.forEach((k, v) -> values.add(new Block(
                    List.of(one("key", scalar(field.keyType(), k)), one("value", value(field.type(), v))),
                    Position.NONE)));
        } else if (list && value instanceof List<?> members) {
            for (Object member : members) {
                values.add(value(field.type(), member));
            }
        } else {
            values.add(value(field.type(), value));
        }
        return new TextValue.Field(field.name(), true, list, values, Position.NONE);
    }

    private static TextValue.Field one(String name, TextValue value) {
        return new TextValue.Field(name, true, false, List.of(value), Position.NONE);
    }

    private static TextValue value(String type, Object value) {
        return value instanceof Map<?, ?> map ? new Block(fields(type, map), Position.NONE) : scalar(type, value);
    }

    private static Scalar scalar(String type, Object value) {
        String text = value.toString();
        boolean negative = text.startsWith("-") && !type.equals("string");
        Kind kind = type.equals("string")
                ? Kind.STRING
                : value instanceof Boolean
                                || ConfigSchema.MODEL_CONFIG.enumeration(type) != null
                                || (value instanceof Double d && !Double.isFinite(d))
                        ? Kind.WORD
                        : Kind.NUMBER;
        return new Scalar(kind, negative ? text.substring(1) : text, negative, Position.NONE);
    }
}
