// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A component of a gjson path together with all components that follow it. Immutable. */
sealed interface GjsonComponent {
    /** Evaluates the path on a value; returns null when it leads to no value. */
    @Nullable JsonNode find(JsonNode from);

    private static ArrayNode array() {
        return JsonNodeFactory.instance.arrayNode();
    }

    /** The end of the path. */
    record End() implements GjsonComponent {
        @Override
        public JsonNode find(JsonNode from) {
            return from;
        }
    }

    /** A key of an object or an index of an array; with wildcards, the first key that matches. */
    record Key(String key, boolean wild, GjsonComponent next) implements GjsonComponent {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            JsonNode found = null;
            if (from.isObject() && wild) {
                for (Map.Entry<String, JsonNode> entry : from.properties()) {
                    if (GjsonWildcards.fits(key, entry.getKey())) {
                        found = entry.getValue();
                        break;
                    }
                }
            } else if (from.isObject()) {
                found = from.get(key);
            } else if (from.isArray() && key.length() < 10 && key.chars().allMatch(c -> c >= '0' && c <= '9')) {
                found = from.get(Integer.parseInt(key));
            }
            return found == null ? null : next.find(found);
        }
    }

    /** {@code #} at the end: the number of elements. */
    record Count() implements GjsonComponent {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            return from.isArray() ? JsonNodeFactory.instance.numberNode(from.size()) : null;
        }
    }

    /**
     * {@code #.rest}: collects the result of {@code rest} for every element that has one; after a pipe, the path goes
     * on with the collected array.
     */
    record Each(GjsonComponent each, GjsonComponent next) implements GjsonComponent {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            if (!from.isArray()) {
                return null;
            }
            ArrayNode all = array();
            for (JsonNode element : from) {
                JsonNode found = each.find(element);
                if (found != null) {
                    all.add(found);
                }
            }
            return next.find(all);
        }
    }

    /** {@code #(query)}: the first element that matches. */
    record First(GjsonQuery query, GjsonComponent next) implements GjsonComponent {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            if (from.isArray()) {
                for (JsonNode element : from) {
                    if (query.fits(element)) {
                        return next.find(element);
                    }
                }
            }
            return null;
        }
    }

    /** {@code #(query)#}: all elements that match. */
    record All(GjsonQuery query, GjsonComponent each, GjsonComponent next) implements GjsonComponent {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            if (!from.isArray()) {
                return null;
            }
            ArrayNode all = array();
            for (JsonNode element : from) {
                if (query.fits(element)) {
                    JsonNode found = each.find(element);
                    if (found != null) {
                        all.add(found);
                    }
                }
            }
            return next.find(all);
        }
    }

    /** {@code [a,b]}: an array multipath, a new array of the results of several paths. */
    record ArrayMultipath(List<GjsonComponent> parts, GjsonComponent next) implements GjsonComponent {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            ArrayNode all = array();
            for (GjsonComponent part : parts) {
                JsonNode found = part.find(from);
                if (found != null) {
                    all.add(found);
                }
            }
            return next.find(all);
        }
    }

    /** {@code {a,"b":c}}: an object multipath, a new object of the results of several paths. */
    record ObjectMultipath(Map<String, GjsonComponent> parts, GjsonComponent next) implements GjsonComponent {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            ObjectNode all = JsonNodeFactory.instance.objectNode();
            parts.forEach((name, part) -> {
                JsonNode found = part.find(from);
                if (found != null) {
                    all.set(name, found);
                }
            });
            return next.find(all);
        }
    }

    /** {@code @name}: a modifier, which transforms the value. */
    record Modifier(Kind kind, GjsonComponent next) implements GjsonComponent {
        /** The supported modifiers. */
        enum Kind {
            /** The value itself: modifiers that only change the layout of the text. */
            THIS,
            /** An array, or an object's members, in reverse order. */
            REVERSE,
            /** An object's keys. */
            KEYS,
            /** An object's values. */
            VALUES,
            /** An array whose nested arrays are replaced by their elements. */
            FLATTEN,
            /** The value as JSON in a string. */
            TOSTR
        }

        @Override
        public @Nullable JsonNode find(JsonNode from) {
            JsonNode changed = switch (kind) {
                case THIS -> from;
                case REVERSE -> reversed(from);
                case KEYS -> {
                    ArrayNode all = array();
                    from.fieldNames().forEachRemaining(all::add);
                    yield all;
                }
                case VALUES -> {
                    ArrayNode all = array();
                    from.elements().forEachRemaining(all::add);
                    yield all;
                }
                case FLATTEN -> {
                    if (!from.isArray()) {
                        yield from;
                    }
                    ArrayNode all = array();
                    for (JsonNode element : from) {
                        if (element.isArray()) {
                            element.elements().forEachRemaining(all::add);
                        } else {
                            all.add(element);
                        }
                    }
                    yield all;
                }
                case TOSTR -> TextNode.valueOf(from.toString());
            };
            return next.find(changed);
        }

        private static JsonNode reversed(JsonNode from) {
            if (from.isArray()) {
                ArrayNode all = array();
                for (int i = from.size() - 1; i >= 0; i--) {
                    all.add(from.get(i));
                }
                return all;
            }
            if (from.isObject()) {
                ObjectNode all = JsonNodeFactory.instance.objectNode();
                List<Map.Entry<String, JsonNode>> members = List.copyOf(from.properties());
                for (int i = members.size() - 1; i >= 0; i--) {
                    all.set(members.get(i).getKey(), members.get(i).getValue());
                }
                return all;
            }
            return from;
        }
    }
}
