// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.schema;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ValidationErrors;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The structural schema of a value: checks types, required fields and unknown fields. Rules that relate several values
 * belong to the validators. Immutable.
 */
public abstract class StructuralSchema {
    /** Any value. */
    static final StructuralSchema ANY = new StructuralSchema() {
        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {}
    };

    /** Any object. */
    static final StructuralSchema TREE = new StructuralSchema() {
        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {
            if (!node.isObject()) {
                problems.addShape(ValidationErrors.wrongType(path, "an object", node));
            }
        }
    };

    /** A string. */
    public static final StructuralSchema TEXT = new StructuralSchema() {
        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {
            if (!node.isTextual()) {
                boolean quotable = node.isNumber() || node.isBoolean();
                problems.addShape(
                        ValidationErrors.wrongType(path, "a string", node) + (quotable ? "; put it in quotes" : ""));
            }
        }
    };

    /** A time in RFC 3339. */
    static final StructuralSchema TIME = new StructuralSchema() {
        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {
            try {
                ObjectMeta.instant(path, node.isTextual() ? node.textValue() : node.toString());
            } catch (ServingException e) {
                problems.addShape(e.getMessage());
            }
        }
    };

    /** True or false. */
    public static final StructuralSchema FLAG = new StructuralSchema() {
        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {
            if (!node.isBoolean()) {
                problems.addShape(ValidationErrors.wrongType(path, "true or false", node)
                        + (node.isTextual() ? "; leave out the quotes" : ""));
            }
        }
    };

    /** An integer of 32 bits. */
    public static final StructuralSchema INT = integer(Integer.MIN_VALUE, Integer.MAX_VALUE);

    /** An integer of 64 bits. */
    static final StructuralSchema LONG = integer(Long.MIN_VALUE, Long.MAX_VALUE);

    /** A port number. */
    static final StructuralSchema PORT = integer(1, 65535);

    /** A string, or an integer of 32 bits. */
    public static final StructuralSchema INT_OR_TEXT = new StructuralSchema() {
        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {
            if (!node.isTextual() && !(node.isIntegralNumber() && node.canConvertToInt())) {
                problems.addShape(ValidationErrors.wrongType(path, "an integer or a string", node));
            }
        }
    };

    /** A quantity, as a string or a number. */
    static final StructuralSchema QUANTITY = new StructuralSchema() {
        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {
            if (!node.isTextual() && !node.isNumber()) {
                problems.addShape(ValidationErrors.wrongType(path, "a quantity such as 500m or 2Gi", node));
                return;
            }
            try {
                Quantity.parse(node.asText());
            } catch (ServingException e) {
                problems.add(path, e.describe());
            }
        }
    };

    /** Labels and other maps of strings. */
    public static final StructuralSchema TEXTS = map(TEXT);

    /** Lists of strings. */
    public static final StructuralSchema TEXT_LIST = list(TEXT);

    /** Maps of quantities. */
    static final StructuralSchema QUANTITIES = map(QUANTITY);

    /** Checks a value and adds its errors to {@code problems}. */
    abstract void check(JsonNode node, String path, ValidationErrors problems);

    static StructuralSchema integer(long from, long to) {
        return new StructuralSchema() {
            @Override
            void check(JsonNode node, String path, ValidationErrors problems) {
                if (!node.isIntegralNumber()) {
                    problems.addShape(ValidationErrors.wrongType(path, "an integer", node)
                            + (node.isTextual() ? "; leave out the quotes" : ""));
                } else if (!node.canConvertToLong() || node.longValue() < from || node.longValue() > to) {
                    problems.addShape(ValidationErrors.wrongType(path, "an integer from " + from + " to " + to, node));
                }
            }
        };
    }

    static StructuralSchema oneOf(String... values) {
        List<String> known = List.of(values);
        return new StructuralSchema() {
            @Override
            void check(JsonNode node, String path, ValidationErrors problems) {
                TEXT.check(node, path, problems);
                if (node.isTextual() && !known.contains(node.textValue())) {
                    problems.add(path, ValidationErrors.unknownValue(node.textValue(), known));
                }
            }
        };
    }

    static StructuralSchema list(StructuralSchema element) {
        return new StructuralSchema() {
            @Override
            void check(JsonNode node, String path, ValidationErrors problems) {
                if (!(node instanceof ArrayNode array)) {
                    problems.addShape(ValidationErrors.wrongType(path, "a list", node));
                    return;
                }
                for (int i = 0; i < array.size(); i++) {
                    element.check(array.get(i), path + "[" + i + "]", problems);
                }
            }
        };
    }

    public static StructuralSchema map(StructuralSchema value) {
        return new StructuralSchema() {
            @Override
            void check(JsonNode node, String path, ValidationErrors problems) {
                if (!(node instanceof ObjectNode object)) {
                    problems.addShape(ValidationErrors.wrongType(path, "an object", node));
                    return;
                }
                object.properties()
                        .forEach(entry -> value.check(
                                entry.getValue(), path + "." + ValidationErrors.clip(entry.getKey()), problems));
            }
        };
    }

    /** An object without fields; a start for {@link Shape#with}. */
    public static Shape object() {
        return new Shape(Map.of(), Set.of(), Map.of());
    }

    /** An object with known fields, each with a schema of its own. Immutable. */
    public static final class Shape extends StructuralSchema {
        private final Map<String, StructuralSchema> fields;
        private final Set<String> required;
        private final Map<String, String> hints;

        private Shape(Map<String, StructuralSchema> fields, Set<String> required, Map<String, String> hints) {
            this.fields = fields;
            this.required = required;
            this.hints = hints;
        }

        /** A copy with further fields of one type. */
        public Shape with(StructuralSchema type, String... names) {
            Map<String, StructuralSchema> more = new LinkedHashMap<>(fields);
            for (String name : names) {
                more.put(name, type);
            }
            return new Shape(more, required, hints);
        }

        /** A copy with the fields, required fields and hints of another shape. */
        Shape with(Shape other) {
            Map<String, StructuralSchema> more = new LinkedHashMap<>(fields);
            more.putAll(other.fields);
            Set<String> needed = new java.util.LinkedHashSet<>(required);
            needed.addAll(other.required);
            Map<String, String> all = new LinkedHashMap<>(hints);
            all.putAll(other.hints);
            return new Shape(more, needed, all);
        }

        Shape required(String... names) {
            Set<String> needed = new java.util.LinkedHashSet<>(required);
            needed.addAll(List.of(names));
            return new Shape(fields, needed, hints);
        }

        /** A copy with a hint for the error message of an unknown field that users are likely to write. */
        Shape hint(String name, String text) {
            Map<String, String> more = new LinkedHashMap<>(hints);
            more.put(name, text);
            return new Shape(fields, required, more);
        }

        @Override
        public void check(JsonNode node, String path, ValidationErrors problems) {
            if (!(node instanceof ObjectNode object)) {
                problems.addShape(ValidationErrors.wrongType(path, "an object", node));
                return;
            }
            String prefix = path.isEmpty() ? "" : path + ".";
            object.properties().forEach(entry -> {
                StructuralSchema type = fields.get(entry.getKey());
                if (type == null) {
                    problems.add(prefix + ValidationErrors.clip(entry.getKey()), unknownField(entry.getKey()));
                } else if (!entry.getValue().isNull()) {
                    type.check(entry.getValue(), prefix + entry.getKey(), problems);
                }
            });
            for (String name : required) {
                if (FieldReader.isAbsent(object.get(name))) {
                    problems.addShape(prefix + name + ": missing; it must be given");
                }
            }
        }

        private String unknownField(String name) {
            String hint = hints.get(name);
            if (hint != null) {
                return "unknown field; " + hint;
            }
            for (String known : fields.keySet()) {
                if (known.equalsIgnoreCase(name)) {
                    return "unknown field; did you mean '" + known + "'?";
                }
            }
            String suggestion = name.length() > ValidationErrors.LONGEST_NAME
                    ? ""
                    : NameSuggestions.didYouMean(name, fields.keySet(), "");
            if (!suggestion.isEmpty()) {
                return "unknown field; " + suggestion;
            }
            return fields.size() > 12
                    ? "unknown field"
                    : "unknown field; known are " + String.join(", ", fields.keySet());
        }
    }

    /** A value that matches one of two schemas; errors are those of the second. Immutable. */
    public static final class Either extends StructuralSchema {
        private final StructuralSchema one;
        private final StructuralSchema other;

        public Either(StructuralSchema one, StructuralSchema other) {
            this.one = one;
            this.other = other;
        }

        @Override
        void check(JsonNode node, String path, ValidationErrors problems) {
            ValidationErrors trial = new ValidationErrors();
            one.check(node, path, trial);
            if (!trial.lines().isEmpty()) {
                other.check(node, path, problems);
            }
        }
    }
}
