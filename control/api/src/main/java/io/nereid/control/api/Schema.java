// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What may stand where in a resource. Immutable. */
abstract class Schema {
    private static final int LONGEST_NAME = 60;

    /** Anything. */
    static final Schema ANY = new Schema() {
        @Override
        void check(JsonNode node, String path, Problems problems) {}
    };

    /** Any object. */
    static final Schema TREE = new Schema() {
        @Override
        void check(JsonNode node, String path, Problems problems) {
            if (!node.isObject()) {
                problems.addShape(wrongType(path, "an object", node));
            }
        }
    };

    /** A string. */
    static final Schema TEXT = new Schema() {
        @Override
        void check(JsonNode node, String path, Problems problems) {
            if (!node.isTextual()) {
                boolean quotable = node.isNumber() || node.isBoolean();
                problems.addShape(wrongType(path, "a string", node) + (quotable ? "; put it in quotes" : ""));
            }
        }
    };

    /** A time in RFC 3339. */
    static final Schema TIME = new Schema() {
        @Override
        void check(JsonNode node, String path, Problems problems) {
            try {
                ObjectMeta.instant(path, node.isTextual() ? node.textValue() : node.toString());
            } catch (ServingException e) {
                problems.addShape(e.getMessage());
            }
        }
    };

    /** True or false. */
    static final Schema FLAG = new Schema() {
        @Override
        void check(JsonNode node, String path, Problems problems) {
            if (!node.isBoolean()) {
                problems.addShape(
                        wrongType(path, "true or false", node) + (node.isTextual() ? "; leave out the quotes" : ""));
            }
        }
    };

    /** An integer of 32 bits. */
    static final Schema INT = integer(Integer.MIN_VALUE, Integer.MAX_VALUE);

    /** An integer of 64 bits. */
    static final Schema LONG = integer(Long.MIN_VALUE, Long.MAX_VALUE);

    /** A port's number. */
    static final Schema PORT = integer(1, 65535);

    /** A string, or an integer of 32 bits. */
    static final Schema INT_OR_TEXT = new Schema() {
        @Override
        void check(JsonNode node, String path, Problems problems) {
            if (!node.isTextual() && !(node.isIntegralNumber() && node.canConvertToInt())) {
                problems.addShape(wrongType(path, "an integer or a string", node));
            }
        }
    };

    /** An amount, as a string or a number. */
    static final Schema QUANTITY = new Schema() {
        @Override
        void check(JsonNode node, String path, Problems problems) {
            if (!node.isTextual() && !node.isNumber()) {
                problems.addShape(wrongType(path, "a quantity such as 500m or 2Gi", node));
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
    static final Schema TEXTS = map(TEXT);

    /** Lists of strings. */
    static final Schema TEXT_LIST = list(TEXT);

    /** Maps of amounts. */
    static final Schema QUANTITIES = map(QUANTITY);

    /** Adds what is wrong. Unknown fields and wrong types, not what values mean together. */
    abstract void check(JsonNode node, String path, Problems problems);

    static Schema integer(long from, long to) {
        return new Schema() {
            @Override
            void check(JsonNode node, String path, Problems problems) {
                if (!node.isIntegralNumber()) {
                    problems.addShape(
                            wrongType(path, "an integer", node) + (node.isTextual() ? "; leave out the quotes" : ""));
                } else if (!node.canConvertToLong() || node.longValue() < from || node.longValue() > to) {
                    problems.addShape(wrongType(path, "an integer from " + from + " to " + to, node));
                }
            }
        };
    }

    static Schema oneOf(String... values) {
        List<String> known = List.of(values);
        return new Schema() {
            @Override
            void check(JsonNode node, String path, Problems problems) {
                TEXT.check(node, path, problems);
                if (node.isTextual() && !known.contains(node.textValue())) {
                    problems.add(path, unknownValue(node.textValue(), known));
                }
            }
        };
    }

    static Schema list(Schema element) {
        return new Schema() {
            @Override
            void check(JsonNode node, String path, Problems problems) {
                if (!(node instanceof ArrayNode array)) {
                    problems.addShape(wrongType(path, "a list", node));
                    return;
                }
                for (int i = 0; i < array.size(); i++) {
                    element.check(array.get(i), path + "[" + i + "]", problems);
                }
            }
        };
    }

    static Schema map(Schema value) {
        return new Schema() {
            @Override
            void check(JsonNode node, String path, Problems problems) {
                if (!(node instanceof ObjectNode object)) {
                    problems.addShape(wrongType(path, "an object", node));
                    return;
                }
                object.properties()
                        .forEach(entry -> value.check(entry.getValue(), path + "." + clip(entry.getKey()), problems));
            }
        };
    }

    /** An object without fields, to which they are added. */
    static Shape object() {
        return new Shape(Map.of(), Set.of(), Map.of());
    }

    /** An object with fields of these names. Immutable. */
    static final class Shape extends Schema {
        private final Map<String, Schema> fields;
        private final Set<String> required;
        private final Map<String, String> hints;

        private Shape(Map<String, Schema> fields, Set<String> required, Map<String, String> hints) {
            this.fields = fields;
            this.required = required;
            this.hints = hints;
        }

        /** With further fields of a type. */
        Shape with(Schema type, String... names) {
            Map<String, Schema> more = new LinkedHashMap<>(fields);
            for (String name : names) {
                more.put(name, type);
            }
            return new Shape(more, required, hints);
        }

        /** With the fields of another one. */
        Shape with(Shape other) {
            Map<String, Schema> more = new LinkedHashMap<>(fields);
            more.putAll(other.fields);
            Set<String> needed = new java.util.LinkedHashSet<>(required);
            needed.addAll(other.required);
            Map<String, String> told = new LinkedHashMap<>(hints);
            told.putAll(other.hints);
            return new Shape(more, needed, told);
        }

        Shape required(String... names) {
            Set<String> needed = new java.util.LinkedHashSet<>(required);
            needed.addAll(List.of(names));
            return new Shape(fields, needed, hints);
        }

        /** What to say of a field that is not there but may be expected. */
        Shape hint(String name, String text) {
            Map<String, String> told = new LinkedHashMap<>(hints);
            told.put(name, text);
            return new Shape(fields, required, told);
        }

        @Override
        void check(JsonNode node, String path, Problems problems) {
            if (!(node instanceof ObjectNode object)) {
                problems.addShape(wrongType(path, "an object", node));
                return;
            }
            String prefix = path.isEmpty() ? "" : path + ".";
            object.properties().forEach(entry -> {
                Schema type = fields.get(entry.getKey());
                if (type == null) {
                    problems.add(prefix + clip(entry.getKey()), unknownField(entry.getKey()));
                } else if (!entry.getValue().isNull()) {
                    type.check(entry.getValue(), prefix + entry.getKey(), problems);
                }
            });
            for (String name : required) {
                if (Fields.isAbsent(object.get(name))) {
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
            String suggestion =
                    name.length() > LONGEST_NAME ? "" : NameSuggestions.didYouMean(name, fields.keySet(), "");
            if (!suggestion.isEmpty()) {
                return "unknown field; " + suggestion;
            }
            return fields.size() > 12
                    ? "unknown field"
                    : "unknown field; known are " + String.join(", ", fields.keySet());
        }
    }

    /** The one or the other. Immutable. */
    static final class Either extends Schema {
        private final Schema one;
        private final Schema other;

        Either(Schema one, Schema other) {
            this.one = one;
            this.other = other;
        }

        @Override
        void check(JsonNode node, String path, Problems problems) {
            Problems trial = new Problems();
            one.check(node, path, trial);
            if (!trial.lines().isEmpty()) {
                other.check(node, path, problems);
            }
        }
    }

    static String unknownValue(String value, Collection<String> known) {
        String suggestion = value.length() > LONGEST_NAME ? "" : NameSuggestions.didYouMean(value, known, "");
        return "\"" + clip(value) + "\" is not one of " + String.join(", ", known)
                + (suggestion.isEmpty() ? "" : "; " + suggestion);
    }

    /** The names near to one, as a sentence's end, or nothing. */
    static String didYouMean(String name, Collection<String> known) {
        String suggestion = name.length() > LONGEST_NAME ? "" : NameSuggestions.didYouMean(name, known, "");
        return suggestion.isEmpty() ? "" : "; " + suggestion;
    }

    static String wrongType(String path, String expected, @Nullable JsonNode found) {
        return path + ": expected " + expected + ", found " + (found == null ? "nothing" : shown(found));
    }

    static String shown(JsonNode found) {
        return switch (found.getNodeType()) {
            case OBJECT -> "an object";
            case ARRAY -> "a list";
            case STRING -> "the string \"" + clip(found.textValue()) + "\"";
            case NULL, MISSING -> "nothing";
            default -> clip(found.toString());
        };
    }

    static String clip(String text) {
        return text.length() <= 80 ? text : text.substring(0, 77) + "...";
    }
}
