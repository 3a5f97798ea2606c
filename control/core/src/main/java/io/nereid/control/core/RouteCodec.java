// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Route.Target;
import io.nereid.control.core.Workload.Component;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Converts routes to and from JSON, in which another process finds them. The format is Nereid's own: an object with the
 * fields of {@link Route}, without those that are null or empty. The same route always has the same text. Stateless.
 *
 * <pre>{@code
 * {"namespace": "default", "name": "iris", "kind": "InferenceService",
 *  "rules": [{"host": "iris.default.example.com"}, {"pathPrefix": "/serving/default/iris"}],
 *  "components": {"predictor": {"targets": [
 *     {"revision": "iris-predictor-00001", "percent": 80},
 *     {"revision": "iris-predictor-00002", "percent": 20, "tag": "latest"}]}}}
 * }</pre>
 */
public final class RouteCodec {
    private static final ObjectMapper JSON = new ObjectMapper();

    private RouteCodec() {}

    /** The route as JSON. */
    public static String write(Route route) {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("namespace", route.namespace());
        tree.put("name", route.name());
        tree.put("kind", route.kind());
        ArrayNode rules = tree.putArray("rules");
        for (IngressRule rule : route.rules()) {
            ObjectNode one = rules.addObject();
            put(one, "host", rule.host());
            put(one, "pathPrefix", rule.pathPrefix());
            put(
                    one,
                    "component",
                    rule.component() == null ? null : rule.component().text());
            put(one, "tag", rule.tag());
        }
        ObjectNode components = tree.putObject("components");
        for (Component component : Component.values()) {
            Backend backend = route.components().get(component);
            if (backend == null) {
                continue;
            }
            ObjectNode one = components.putObject(component.text());
            targets(one.putArray("targets"), backend.targets());
            if (!backend.mirrors().isEmpty()) {
                targets(one.putArray("mirrors"), backend.mirrors());
            }
            put(one, "stickyHeader", backend.stickyHeader());
        }
        put(tree, "graph", route.graph());
        return tree.toString();
    }

    private static void targets(ArrayNode to, List<Target> targets) {
        for (Target target : targets) {
            ObjectNode one = to.addObject();
            one.put("revision", target.revision());
            one.put("percent", target.percent());
            put(one, "tag", target.tag());
        }
    }

    private static void put(ObjectNode tree, String field, @Nullable String value) {
        if (value != null && !value.isEmpty()) {
            tree.put(field, value);
        }
    }

    /**
     * Reads a route that {@link #write} wrote.
     *
     * @throws ServingException INVALID_ARGUMENT when the text is not a route
     */
    public static Route read(String text) {
        JsonNode tree;
        try {
            tree = JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT, "a route is not JSON: " + e.getOriginalMessage(), e);
        }
        List<IngressRule> rules = new ArrayList<>();
        for (JsonNode rule : tree.path("rules")) {
            String component = rule.path("component").asText("");
            rules.add(new IngressRule(
                    rule.path("host").asText(""),
                    rule.path("pathPrefix").asText(""),
                    component.isEmpty() ? null : component(component),
                    text(rule, "tag")));
        }
        Map<Component, Backend> components = new EnumMap<>(Component.class);
        tree.path("components").properties().forEach(entry -> {
            JsonNode backend = entry.getValue();
            List<Target> targets = targets(backend.path("targets"));
            if (targets.isEmpty()) {
                throw invalid(
                        "components." + entry.getKey() + ".targets", backend.path("targets"), "a list of targets");
            }
            components.put(
                    component(entry.getKey()),
                    new Backend(targets, targets(backend.path("mirrors")), text(backend, "stickyHeader")));
        });
        return new Route(
                required(tree, "namespace"),
                required(tree, "name"),
                required(tree, "kind"),
                List.copyOf(rules),
                Map.copyOf(components),
                tree.path("graph").asText(""));
    }

    private static List<Target> targets(JsonNode list) {
        List<Target> targets = new ArrayList<>();
        for (JsonNode target : list) {
            JsonNode percent = target.path("percent");
            if (!percent.isInt() || percent.intValue() < 0 || percent.intValue() > 100) {
                throw invalid("percent", percent, "a number from 0 to 100");
            }
            targets.add(new Target(required(target, "revision"), percent.intValue(), text(target, "tag")));
        }
        return List.copyOf(targets);
    }

    private static Component component(String text) {
        for (Component component : Component.values()) {
            if (component.text().equals(text)) {
                return component;
            }
        }
        throw ServingException.invalidArgument(
                "a route has the component '" + text + "' (expected: predictor, transformer or explainer)");
    }

    private static @Nullable String text(JsonNode tree, String field) {
        String text = tree.path(field).asText("");
        return text.isEmpty() ? null : text;
    }

    private static String required(JsonNode tree, String field) {
        String text = text(tree, field);
        if (text == null) {
            throw invalid(field, tree.path(field), "a text");
        }
        return text;
    }

    private static ServingException invalid(String field, JsonNode value, String expected) {
        return ServingException.invalidArgument(
                value.isMissingNode()
                        ? "a route has no " + field + " (expected: " + expected + ")"
                        : "a route has the " + field + " " + value + " (expected: " + expected + ")");
    }
}
