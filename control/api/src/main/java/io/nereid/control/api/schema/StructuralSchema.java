// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.schema;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.GoDuration;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ValidationErrors;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The structural schema of a value: checks types, required fields and unknown fields, and writes itself as a schema of a
 * CustomResourceDefinition. Rules that relate several values belong to the validators. Immutable.
 */
public abstract class StructuralSchema {
    private static final String PRESERVE = "x-kubernetes-preserve-unknown-fields";
    private static final String INT_OR_STRING = "x-kubernetes-int-or-string";

    /** Resource quantities, a little wider than their grammar. */
    private static final String QUANTITY_PATTERN = "^[+-]?[0-9.]+([eE][+-]?[0-9.]+|[KMGTPE]i|[numkMGTPE])?$";

    /** Which fields of an object admission and a CustomResourceDefinition know. */
    private enum Extent {
        CLOSED,
        OPEN,
        FOLDED
    }

    /** Any value. */
    static final StructuralSchema ANY = leaf(form(PRESERVE, true), (node, path, problems) -> {});

    /** Any object. */
    static final StructuralSchema TREE = leaf(typed("object").put(PRESERVE, true), (node, path, problems) -> {
        if (!node.isObject()) {
            problems.addShape(ValidationErrors.wrongType(path, "an object", node));
        }
    });

    /** A string. */
    public static final StructuralSchema TEXT = leaf(typed("string"), StructuralSchema::text);

    /** A time in RFC 3339. */
    static final StructuralSchema TIME = leaf(typed("string").put("format", "date-time"), (node, path, problems) -> {
        try {
            ObjectMeta.instant(path, node.isTextual() ? node.textValue() : node.toString());
        } catch (ServingException e) {
            problems.addShape(e.getMessage());
        }
    });

    /** True or false. */
    public static final StructuralSchema FLAG = leaf(typed("boolean"), (node, path, problems) -> {
        if (!node.isBoolean()) {
            problems.addShape(ValidationErrors.wrongType(path, "true or false", node)
                    + (node.isTextual() ? "; leave out the quotes" : ""));
        }
    });

    /** An integer of 32 bits. */
    public static final StructuralSchema INT = integer(Integer.MIN_VALUE, Integer.MAX_VALUE);

    /** An integer of 64 bits. */
    static final StructuralSchema LONG = integer(Long.MIN_VALUE, Long.MAX_VALUE);

    /** A port number. */
    static final StructuralSchema PORT = integer(1, 65535);

    /** A string, or an integer of 32 bits. */
    public static final StructuralSchema INT_OR_TEXT = leaf(form(INT_OR_STRING, true), (node, path, problems) -> {
        if (!node.isTextual() && !(node.isIntegralNumber() && node.canConvertToInt())) {
            problems.addShape(ValidationErrors.wrongType(path, "an integer or a string", node));
        }
    });

    /** A quantity, as a string or a number. */
    static final StructuralSchema QUANTITY =
            leaf(form(INT_OR_STRING, true).put("pattern", QUANTITY_PATTERN), (node, path, problems) -> {
                if (!node.isTextual() && !node.isNumber()) {
                    problems.addShape(ValidationErrors.wrongType(path, "a quantity such as 500m or 2Gi", node));
                    return;
                }
                try {
                    Quantity.parse(node.asText());
                } catch (ServingException e) {
                    problems.add(path, e.describe());
                }
            });

    /** A duration such as 5s or 1m30s, or a number of seconds. */
    static final StructuralSchema INTERVAL = leaf(form(INT_OR_STRING, true), (node, path, problems) -> {
        if (node.isTextual() ? GoDuration.ofSecondsOrText(node.textValue()) == null : !node.isIntegralNumber()) {
            problems.addShape(
                    ValidationErrors.wrongType(path, "a duration such as 5s, or an integer of seconds", node));
        }
    });

    /** Labels and other maps of strings. */
    public static final StructuralSchema TEXTS = map(TEXT);

    /** Lists of strings. */
    public static final StructuralSchema TEXT_LIST = list(TEXT);

    /** Maps of quantities. */
    static final StructuralSchema QUANTITIES = map(QUANTITY);

    /** Checks a value and adds its errors to {@code problems}. */
    abstract void check(JsonNode node, String path, ValidationErrors problems);

    /**
     * The schema as a structural schema of {@code apiextensions.k8s.io/v1}; a new tree. It accepts what {@link #check}
     * accepts and more: it has neither hints nor the limits that would refuse an object that KServe has stored.
     */
    public abstract ObjectNode openApi();

    /** Integers of a range. A CustomResourceDefinition knows only whether they have 32 or 64 bits. */
    static StructuralSchema integer(long from, long to) {
        boolean small = from >= Integer.MIN_VALUE && to <= Integer.MAX_VALUE;
        ObjectNode form = typed("integer");
        // 64 bits are what an integer without a format has.
        return leaf(small ? form.put("format", "int32") : form, (node, path, problems) -> {
            if (!node.isIntegralNumber()) {
                problems.addShape(ValidationErrors.wrongType(path, "an integer", node)
                        + (node.isTextual() ? "; leave out the quotes" : ""));
            } else if (!node.canConvertToLong() || node.longValue() < from || node.longValue() > to) {
                problems.addShape(ValidationErrors.wrongType(path, "an integer from " + from + " to " + to, node));
            }
        });
    }

    /** Strings of a set. A CustomResourceDefinition takes every string there, as KServe's do; admission does not. */
    static StructuralSchema oneOf(String... values) {
        return words(typed("string"), values);
    }

    /** Strings of a set, which a CustomResourceDefinition lists, as KServe's do. */
    static StructuralSchema enumOf(String... values) {
        ObjectNode form = typed("string");
        List.of(values).forEach(form.putArray("enum")::add);
        return words(form, values);
    }

    private static StructuralSchema words(ObjectNode form, String... values) {
        List<String> known = List.of(values);
        return leaf(form, (node, path, problems) -> {
            text(node, path, problems);
            if (node.isTextual() && !known.contains(node.textValue())) {
                problems.add(path, ValidationErrors.unknownValue(node.textValue(), known));
            }
        });
    }

    static StructuralSchema list(StructuralSchema element) {
        return listBy(element);
    }

    /**
     * A list whose elements are identified by the values of some fields. Server-side apply merges such a list element by
     * element, and the API server refuses duplicates; admission does not look for them.
     *
     * @param keys the required fields that identify an element; none for a list that is replaced as a whole
     */
    static StructuralSchema listBy(StructuralSchema element, String... keys) {
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

            @Override
            public ObjectNode openApi() {
                ObjectNode form = typed("array");
                form.set("items", element.openApi());
                if (keys.length > 0) {
                    form.put("x-kubernetes-list-type", "map");
                    List.of(keys).forEach(form.putArray("x-kubernetes-list-map-keys")::add);
                }
                return form;
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

            @Override
            public ObjectNode openApi() {
                ObjectNode form = typed("object");
                form.set("additionalProperties", value.openApi());
                return form;
            }
        };
    }

    private interface Check {
        void run(JsonNode node, String path, ValidationErrors problems);
    }

    private static StructuralSchema leaf(ObjectNode form, Check check) {
        return new StructuralSchema() {
            @Override
            void check(JsonNode node, String path, ValidationErrors problems) {
                check.run(node, path, problems);
            }

            @Override
            public ObjectNode openApi() {
                return form.deepCopy();
            }
        };
    }

    private static void text(JsonNode node, String path, ValidationErrors problems) {
        if (!node.isTextual()) {
            boolean quotable = node.isNumber() || node.isBoolean();
            problems.addShape(
                    ValidationErrors.wrongType(path, "a string", node) + (quotable ? "; put it in quotes" : ""));
        }
    }

    private static ObjectNode form(String name, boolean value) {
        return JsonNodeFactory.instance.objectNode().put(name, value);
    }

    private static ObjectNode typed(String type) {
        return JsonNodeFactory.instance.objectNode().put("type", type);
    }

    /** An object without fields; a start for {@link Shape#with}. */
    public static Shape object() {
        return new Shape(Map.of(), Set.of(), Map.of(), Extent.CLOSED);
    }

    /** An object with known fields, each with a schema of its own. Immutable. */
    public static final class Shape extends StructuralSchema {
        private final Map<String, StructuralSchema> fields;
        private final Set<String> required;
        private final Map<String, String> hints;
        private final Extent extent;

        private Shape(
                Map<String, StructuralSchema> fields, Set<String> required, Map<String, String> hints, Extent extent) {
            this.fields = fields;
            this.required = required;
            this.hints = hints;
            this.extent = extent;
        }

        /** A copy with further fields of one type. */
        public Shape with(StructuralSchema type, String... names) {
            Map<String, StructuralSchema> more = new LinkedHashMap<>(fields);
            for (String name : names) {
                more.put(name, type);
            }
            return new Shape(more, required, hints, extent);
        }

        /** A copy with the fields, required fields and hints of another shape. */
        Shape with(Shape other) {
            Map<String, StructuralSchema> more = new LinkedHashMap<>(fields);
            more.putAll(other.fields);
            Set<String> needed = new java.util.LinkedHashSet<>(required);
            needed.addAll(other.required);
            Map<String, String> all = new LinkedHashMap<>(hints);
            all.putAll(other.hints);
            return new Shape(more, needed, all, extent);
        }

        Shape required(String... names) {
            Set<String> needed = new java.util.LinkedHashSet<>(required);
            needed.addAll(List.of(names));
            return new Shape(fields, needed, hints, extent);
        }

        /** A copy with a hint for the error message of an unknown field that users are likely to write. */
        Shape hint(String name, String text) {
            Map<String, String> more = new LinkedHashMap<>(hints);
            more.put(name, text);
            return new Shape(fields, required, more, extent);
        }

        /** A copy that accepts further fields. */
        Shape open() {
            return new Shape(fields, required, hints, Extent.OPEN);
        }

        /**
         * A copy whose fields only admission knows: in a CustomResourceDefinition it is an object with any fields. For
         * parts that occur so often that their fields would make the definition too large.
         */
        Shape folded() {
            return new Shape(fields, required, hints, Extent.FOLDED);
        }

        @Override
        public ObjectNode openApi() {
            if (extent == Extent.FOLDED) {
                return TREE.openApi();
            }
            ObjectNode form = typed("object");
            ObjectNode properties = form.putObject("properties");
            fields.forEach((name, type) -> {
                ObjectNode field = type.openApi();
                // A field without a value, such as "resources:" in YAML, is one that is not there. Of an enumeration
                // the
                // API server wants null among its values.
                if (!required.contains(name) && !field.has("enum")) {
                    field.put("nullable", true);
                }
                properties.set(name, field);
            });
            if (!required.isEmpty()) {
                required.forEach(form.putArray("required")::add);
            }
            return extent == Extent.OPEN ? form.put(PRESERVE, true) : form;
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
                if (type == null && extent == Extent.OPEN) {
                    return;
                }
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

        /** Any value: a structural schema cannot have alternatives of different types. */
        @Override
        public ObjectNode openApi() {
            return ANY.openApi();
        }
    }
}
