// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * The differences between two recordings of a case: stages are made whole, lists whose elements have a key are compared
 * without their order, and a difference that goes on is told where it begins.
 */
final class GoldenComparison {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNode NOTHING = TextNode.valueOf("-");
    private static final List<String> KEYS = List.of(
            "mountPath", "name", "type", "containerPort", "port", "host", "path", "ip", "key", "url", "modelName");
    private static final Set<String> ORDERED = Set.of("steps", "initContainers");
    private static final Set<String> SETS =
            Set.of("finalizers", "accessModes", "hostnames", "hosts", "gateways", "drop", "add", "warnings");

    private GoldenComparison() {}

    record Difference(String path, JsonNode theirs, JsonNode ours) {}

    record Excuse(Pattern path, List<JsonNode> of) {}

    static List<Difference> compare(ObjectNode theirs, ObjectNode ours, Set<String> sections, List<Excuse> excuses) {
        Map<String, Map<String, ObjectNode>> a = whole(theirs);
        Map<String, Map<String, ObjectNode>> b = whole(ours);
        Set<String> stages = new LinkedHashSet<>(a.keySet());
        stages.addAll(b.keySet());
        List<Difference> found = new ArrayList<>();
        Set<String> before = new HashSet<>();
        Map<String, ObjectNode> lastA = Map.of();
        Map<String, ObjectNode> lastB = Map.of();
        for (String stage : stages) {
            lastA = a.containsKey(stage) ? a.get(stage) : lasting(lastA);
            lastB = b.containsKey(stage) ? b.get(stage) : lasting(lastB);
            Set<String> now = new HashSet<>();
            for (String section : new TreeSet<>(sections)) {
                List<Difference> all = new ArrayList<>();
                differ(
                        lastA.getOrDefault(section, Trees.object()),
                        lastB.getOrDefault(section, Trees.object()),
                        section,
                        all);
                for (Difference one : all) {
                    String same = one.path + "\n" + one.theirs + "\n" + one.ours;
                    String full = (stage.isEmpty() ? "/" : "/" + stage + "/") + one.path;
                    boolean excused = excuses.stream()
                            .anyMatch(excuse -> excuse.path.matcher(full).lookingAt()
                                    && (excuse.of.isEmpty()
                                            || excuse.of.contains(one.theirs) && excuse.of.contains(one.ours)));
                    if (before.contains(same)) {
                        now.add(same);
                    } else if (!excused) {
                        now.add(same);
                        found.add(new Difference(full, one.theirs, one.ours));
                    }
                }
            }
            before = now;
        }
        return found;
    }

    private static Map<String, ObjectNode> lasting(Map<String, ObjectNode> stage) {
        Map<String, ObjectNode> lasting = new TreeMap<>(stage);
        lasting.keySet().retainAll(Set.of("stored", "status", "objects"));
        return lasting;
    }

    /** The sections of every stage, by names; the stage without a name is for the case as a whole. */
    private static Map<String, Map<String, ObjectNode>> whole(ObjectNode document) {
        Map<String, Map<String, ObjectNode>> all = new LinkedHashMap<>();
        Map<String, ObjectNode> first = new TreeMap<>();
        first.put("pods", pods(document));
        all.put("", first);
        ObjectNode status = Trees.object();
        ObjectNode objects = Trees.object();
        for (JsonNode stage : document.path("stages")) {
            stage.path("status").properties().forEach(one -> status.set(one.getKey(), one.getValue()));
            for (String list : List.of("objects", "changed")) {
                for (JsonNode one : stage.path(list)) {
                    // a step's own change of a runtime is recorded as well, though nothing made it
                    if (!one.path("kind").asText().equals("ServingRuntime")) {
                        objects.set(key(one), one);
                    }
                }
            }
            stage.path("servedGone").forEach(one -> status.remove(one.asText()));
            stage.path("removed").forEach(one -> objects.remove(one.asText()));
            Map<String, ObjectNode> sections = new TreeMap<>();
            sections.put("status", status.deepCopy());
            sections.put("objects", objects.deepCopy());
            sections.put("pods", pods(stage));
            sections.put("events", events(stage));
            all.put(stage.path("stage").asText(), sections);
        }
        return all;
    }

    static String key(JsonNode object) {
        return object.path("apiVersion").asText() + "/" + object.path("kind").asText() + "/"
                + object.path("metadata").path("name").asText();
    }

    private static ObjectNode pods(JsonNode stage) {
        ObjectNode pods = Trees.object();
        List<JsonNode> sorted = new ArrayList<>();
        stage.path("pods").forEach(sorted::add);
        sorted.sort(Comparator.comparing(one -> one.path("of").asText()));
        sorted.forEach(one -> {
            String name = one.path("of").asText();
            pods.set(pods.has(name) ? name + "#2" : name, one.path("pod"));
        });
        return pods;
    }

    private static ObjectNode events(JsonNode stage) {
        ObjectNode events = Trees.object();
        stage.path("events")
                .forEach(one -> events.set(
                        one.path("about").asText() + " " + one.path("reason").asText() + ": "
                                + one.path("message").asText(),
                        one.path("type")));
        return events;
    }

    private static void differ(JsonNode a, JsonNode b, String path, List<Difference> found) {
        if (a.equals(b)) {
            return;
        }
        String last = path.substring(path.lastIndexOf('/') + 1);
        if (a instanceof ObjectNode && b instanceof ObjectNode) {
            Set<String> names = new LinkedHashSet<>();
            a.fieldNames().forEachRemaining(names::add);
            b.fieldNames().forEachRemaining(names::add);
            for (String name : names) {
                differ(
                        a.has(name) ? a.get(name) : NOTHING,
                        b.has(name) ? b.get(name) : NOTHING,
                        path + "/" + name,
                        found);
            }
        } else if (a instanceof ArrayNode x && b instanceof ArrayNode y) {
            List<ObjectNode> keyed = ORDERED.contains(last) ? List.of() : keyed(x, y);
            if (!keyed.isEmpty()) {
                differ(keyed.get(0), keyed.get(1), path, found);
            } else if (SETS.contains(last) && sorted(x).equals(sorted(y))) {
                return;
            } else if (x.size() == y.size()) {
                for (int i = 0; i < x.size(); i++) {
                    differ(x.get(i), y.get(i), path + "/" + i, found);
                }
            } else {
                found.add(new Difference(path, a, b));
            }
        } else {
            JsonNode x = json(a);
            JsonNode y = json(b);
            if (x != null && y != null) {
                differ(x, y, path + "/JSON", found);
            } else if (!(a.isNumber() && b.isNumber() && a.asText().equals(b.asText()))) {
                found.add(new Difference(path, a, b));
            }
        }
    }

    private static JsonNode json(JsonNode text) {
        String value = text.isTextual() ? text.textValue() : "";
        if (value.length() > 1
                && "{[".indexOf(value.charAt(0)) >= 0
                && "}]".indexOf(value.charAt(value.length() - 1)) >= 0) {
            try {
                return JSON.readTree(value);
            } catch (JsonProcessingException e) {
                return null;
            }
        }
        return null;
    }

    private static List<String> sorted(ArrayNode list) {
        List<String> all = new ArrayList<>();
        list.forEach(one -> all.add(one.toString()));
        all.sort(Comparator.naturalOrder());
        return all;
    }

    private static List<ObjectNode> keyed(ArrayNode x, ArrayNode y) {
        for (String key : KEYS) {
            ObjectNode a = by(x, key);
            ObjectNode b = by(y, key);
            if (a != null && b != null && x.size() + y.size() > 0) {
                return List.of(a, b);
            }
        }
        return List.of();
    }

    private static ObjectNode by(ArrayNode list, String key) {
        ObjectNode all = Trees.object();
        for (JsonNode one : list) {
            JsonNode value = one.path(key);
            if (!one.isObject() || !(value.isTextual() || value.isIntegralNumber()) || all.has(value.asText())) {
                return null;
            }
            all.set(value.asText(), one);
        }
        return all;
    }
}
