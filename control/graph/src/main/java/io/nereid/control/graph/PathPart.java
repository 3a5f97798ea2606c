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

/** A part of a path with all that follows it. Immutable. */
sealed interface PathPart {
    /** What the path leads to from a value, or null for nothing. */
    @Nullable JsonNode find(JsonNode from);

    private static ArrayNode array() {
        return JsonNodeFactory.instance.arrayNode();
    }

    /** Where the path ends. */
    record End() implements PathPart {
        @Override
        public JsonNode find(JsonNode from) {
            return from;
        }
    }

    /** A key of an object, or an index of an array; with wildcards, the first key that fits. */
    record Key(String key, boolean wild, PathPart next) implements PathPart {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            JsonNode found = null;
            if (from.isObject() && wild) {
                for (Map.Entry<String, JsonNode> entry : from.properties()) {
                    if (Wildcards.fits(key, entry.getKey())) {
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

    /** {@code #} at the end: how many elements. */
    record Count() implements PathPart {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            return from.isArray() ? JsonNodeFactory.instance.numberNode(from.size()) : null;
        }
    }

    /** {@code #.rest}: the rest of every element that has it; after a pipe, the rest of the whole array. */
    record Each(PathPart each, PathPart next) implements PathPart {
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

    /** {@code #(query)}: the first element that fits. */
    record First(Query query, PathPart next) implements PathPart {
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

    /** {@code #(query)#}: every element that fits. */
    record All(Query query, PathPart each, PathPart next) implements PathPart {
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

    /** {@code [a,b]}: a new array of what the paths lead to. */
    record Several(List<PathPart> parts, PathPart next) implements PathPart {
        @Override
        public @Nullable JsonNode find(JsonNode from) {
            ArrayNode all = array();
            for (PathPart part : parts) {
                JsonNode found = part.find(from);
                if (found != null) {
                    all.add(found);
                }
            }
            return next.find(all);
        }
    }

    /** {@code {a,"b":c}}: a new object. */
    record Named(Map<String, PathPart> parts, PathPart next) implements PathPart {
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

    /** {@code @name}. */
    record Modifier(Kind kind, PathPart next) implements PathPart {
        /** What they do. */
        enum Kind {
            /** The value itself, whatever its layout. */
            THIS,
            /** An array, or an object's members, the other way round. */
            REVERSE,
            /** An object's keys. */
            KEYS,
            /** An object's values. */
            VALUES,
            /** An array with its arrays' elements in their place. */
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
