// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads and changes the trees of Kubernetes' objects. Stateless. */
public final class Trees {
    /** The kind of Knative's Services in keys: their own kind is that of Kubernetes' Services. */
    public static final String KNATIVE_SERVICE = "KnativeService";

    private Trees() {}

    public static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    /** The list of this name, made if it is not there. */
    public static ArrayNode list(ObjectNode tree, String field) {
        return tree.get(field) instanceof ArrayNode there ? there : tree.putArray(field);
    }

    /** The object of this name, made if it is not there. */
    public static ObjectNode object(ObjectNode tree, String field) {
        return tree.get(field) instanceof ObjectNode there ? there : tree.putObject(field);
    }

    /** The element of a list whose field has this value; null for none. */
    public static @Nullable ObjectNode find(JsonNode list, String field, String value) {
        for (JsonNode one : list) {
            if (one instanceof ObjectNode object && value.equals(one.path(field).asText(null))) {
                return object;
            }
        }
        return null;
    }

    /** The element of a list with this name; null for none. */
    public static @Nullable ObjectNode named(JsonNode list, String name) {
        return find(list, "name", name);
    }

    /** Adds an element with a name unless one of that name is there. */
    public static void addNamed(ObjectNode tree, String field, ObjectNode element) {
        ArrayNode list = list(tree, field);
        if (named(list, element.path("name").asText()) == null) {
            list.add(element);
        }
    }

    /** Adds an environment variable unless one of that name is there. */
    public static void env(ObjectNode container, String name, String value) {
        addNamed(container, "env", object().put("name", name).put("value", value));
    }

    /** Sets an environment variable, whether it is there or not. */
    public static void setEnv(ObjectNode container, String name, String value) {
        ObjectNode there = named(list(container, "env"), name);
        if (there == null) {
            env(container, name, value);
        } else {
            there.remove("valueFrom");
            there.put("value", value);
        }
    }

    public static ArrayNode texts(ObjectNode tree, String field, Iterable<String> values) {
        ArrayNode list = tree.putArray(field);
        values.forEach(list::add);
        return list;
    }

    public static void map(ObjectNode tree, String field, Map<String, String> values) {
        ObjectNode map = tree.putObject(field);
        values.forEach(map::put);
    }

    /** The texts of a map, in their order. */
    public static Map<String, String> map(JsonNode tree) {
        Map<String, String> all = new LinkedHashMap<>();
        tree.properties()
                .forEach(entry -> all.put(entry.getKey(), entry.getValue().asText()));
        return all;
    }

    /** The key of an object in its namespace: {@code Deployment/iris-predictor}. */
    public static String key(JsonNode object) {
        return key(kind(object), object.path("metadata").path("name").asText());
    }

    /** The kind of an object in keys; of Knative's Services {@value #KNATIVE_SERVICE}. */
    public static String kind(JsonNode object) {
        String kind = object.path("kind").asText();
        return kind.equals("Service") && object.path("apiVersion").asText().startsWith("serving.knative.dev/")
                ? KNATIVE_SERVICE
                : kind;
    }

    public static String key(String kind, String name) {
        return kind + "/" + name;
    }

    /** Whether the status of an object has a condition with the status True. */
    public static boolean isTrue(JsonNode object, String condition) {
        for (JsonNode one : object.path("status").path("conditions")) {
            if (one.path("type").asText().equals(condition)) {
                return one.path("status").asText().equals("True");
            }
        }
        return false;
    }
}
