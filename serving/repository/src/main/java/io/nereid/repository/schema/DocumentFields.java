// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.schema;

import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.ConfigSchema.Cardinality;
import io.nereid.repository.schema.ConfigSchema.Field;
import io.nereid.repository.textformat.TextFormatNode;
import io.nereid.repository.textformat.TextFormatNode.Block;
import io.nereid.repository.textformat.TextFormatNode.Kind;
import io.nereid.repository.textformat.TextFormatNode.Scalar;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Converts a configuration document back to the syntax tree of its text, so that the same rules validate it. Immutable.
 */
public final class DocumentFields {
    private DocumentFields() {}

    public static List<TextFormatNode.Field> of(Map<String, Object> document) {
        return fields("ModelConfig", document);
    }

    private static List<TextFormatNode.Field> fields(String type, Map<?, ?> message) {
        List<TextFormatNode.Field> fields = new ArrayList<>();
        Map<String, Field> known = ConfigSchema.MODEL_CONFIG.fields(type);
        message.forEach((name, value) -> {
            Field field = known == null ? null : known.get(name.toString());
            if (field != null) {
                fields.add(field(field, value));
            }
        });
        return fields;
    }

    private static TextFormatNode.Field field(Field field, Object value) {
        List<TextFormatNode> values = new ArrayList<>();
        boolean list = field.cardinality() != Cardinality.ONE;
        if (field.cardinality() == Cardinality.MAP && value instanceof Map<?, ?> map) {
            map.forEach((k, v) -> values.add(new Block(
                    List.of(one("key", scalar(field.keyType(), k)), one("value", value(field.type(), v))),
                    SourcePosition.NONE)));
        } else if (list && value instanceof List<?> members) {
            for (Object member : members) {
                values.add(value(field.type(), member));
            }
        } else {
            values.add(value(field.type(), value));
        }
        return new TextFormatNode.Field(field.name(), true, list, values, SourcePosition.NONE);
    }

    private static TextFormatNode.Field one(String name, TextFormatNode value) {
        return new TextFormatNode.Field(name, true, false, List.of(value), SourcePosition.NONE);
    }

    private static TextFormatNode value(String type, Object value) {
        return value instanceof Map<?, ?> map ? new Block(fields(type, map), SourcePosition.NONE) : scalar(type, value);
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
        return new Scalar(kind, negative ? text.substring(1) : text, negative, SourcePosition.NONE);
    }
}
