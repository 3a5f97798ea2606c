// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.document;

import static io.nereid.protocols.openapi.schema.OpenApiNodes.json;
import static io.nereid.protocols.openapi.schema.OpenApiNodes.member;
import static io.nereid.protocols.openapi.schema.OpenApiNodes.object;
import static io.nereid.protocols.openapi.schema.OpenApiNodes.reference;

import io.nereid.base.access.Operation;
import io.nereid.protocols.openapi.options.AccessDescription;
import io.nereid.protocols.openapi.schema.OpenApiNodes;
import io.nereid.transport.api.HttpRoute;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Composes one document: path items of routes, with what follows from a route and is not in its description (path
 * parameters, errors, access), and the components that they refer to. Confined to one thread; used once.
 */
final class DocumentComposer {
    private static final Pattern PLACEHOLDER = Pattern.compile("\\{([^}.]+)}");

    private final AccessDescription access;
    private final Map<String, Object> schemes;
    private final Map<String, Map<String, @Nullable Object>> paths = new TreeMap<>();
    private final Map<String, @Nullable Object> prefixes = new TreeMap<>();
    private final Map<String, Map<String, @Nullable Object>> components = new LinkedHashMap<>();
    private final Map<String, Object> tags = new LinkedHashMap<>();
    private final Set<String> usedTags = new LinkedHashSet<>();

    DocumentComposer(AccessDescription access) {
        this.access = access;
        this.schemes = access.schemes();
    }

    /** Adds the components of a protocol, which take no effect until a route refers to them. */
    void components(RouteDescriptions from) {
        if (from.part("components") instanceof Map<?, ?> kinds) {
            kinds.forEach((kind, named) -> {
                if (named instanceof Map<?, ?> map) {
                    map.forEach((name, value) -> kind(String.valueOf(kind)).putIfAbsent(String.valueOf(name), value));
                }
            });
        }
        if (from.part("tags") instanceof List<?> list) {
            for (Object tag : list) {
                if (tag instanceof Map<?, ?> map) {
                    tags.putIfAbsent(String.valueOf(map.get("name")), tag);
                }
            }
        }
    }

    /** The components of a kind, such as {@code schemas}. */
    Map<String, @Nullable Object> kind(String kind) {
        return components.computeIfAbsent(kind, k -> new LinkedHashMap<>());
    }

    /** Adds a route that stands for all paths with a prefix, which OpenAPI cannot express. */
    void prefix(HttpRoute route, RouteDescriptions descriptions) {
        Map<String, @Nullable Object> entry = object("method", route.method());
        if (descriptions.prefix(route) instanceof Map<?, ?> description) {
            description.forEach((name, value) -> entry.put(String.valueOf(name), value));
        }
        prefixes.put(route.template(), entry);
    }

    /**
     * Adds a route.
     *
     * @param path the path in the document, some of whose placeholders may have been replaced
     * @param operation the description, changed as the document needs it; null without one
     */
    void route(
            HttpRoute route,
            String path,
            RouteDescriptions descriptions,
            @Nullable Map<String, @Nullable Object> operation) {
        String method = route.method().toLowerCase(Locale.ROOT);
        Map<String, @Nullable Object> written = operation == null
                ? object(
                        "operationId",
                        undescribedId(method, path),
                        "responses",
                        object("200", object("description", "OK")))
                : operation;
        parameters(path, written);
        if (route.operations() instanceof Operation kind) {
            written.put("x-nereid-permission", kind.permission().configName());
            if (!schemes.isEmpty()) {
                written.put("security", requirements(kind));
            }
            errors(route, kind, descriptions, written);
        }
        if (written.get("tags") instanceof List<?> used) {
            used.forEach(tag -> usedTags.add(String.valueOf(tag)));
        }
        paths.computeIfAbsent(path, p -> object()).put(method, written);
    }

    private List<Object> requirements(Operation kind) {
        List<Object> requirements = new ArrayList<>();
        for (List<String> together : access.alternatives(kind)) {
            Map<String, @Nullable Object> requirement = object();
            together.forEach(scheme -> requirement.put(scheme, List.of()));
            requirements.add(requirement);
        }
        return requirements;
    }

    private static String undescribedId(String method, String path) {
        return method + path.replaceAll("[^A-Za-z0-9]+", "_");
    }

    private void parameters(String path, Map<String, @Nullable Object> operation) {
        List<Object> all = new ArrayList<>();
        Matcher placeholder = PLACEHOLDER.matcher(path);
        while (placeholder.find()) {
            String name = placeholder.group(1);
            all.add(
                    kind("parameters").containsKey(name)
                            ? reference("parameters", name)
                            : object("name", name, "in", "path", "required", true, "schema", object("type", "string")));
        }
        if (operation.get("parameters") instanceof List<?> own) {
            all.addAll(own);
        }
        if (!all.isEmpty()) {
            operation.put("parameters", all);
        }
    }

    /** Adds the errors that every route of its kind may answer, with the body of the protocol. */
    private void errors(
            HttpRoute route, Operation kind, RouteDescriptions descriptions, Map<String, @Nullable Object> operation) {
        Object own = operation.remove("x-nereid-error");
        Object body = own == null ? descriptions.error() : own;
        if (body == null) {
            return;
        }
        Map<String, @Nullable Object> responses = member(operation, "responses");
        Map<String, String> possible = new LinkedHashMap<>();
        if (operation.containsKey("requestBody") || route.template().indexOf('{') >= 0) {
            possible.put("400", "The request is not valid");
        }
        if (!schemes.isEmpty()) {
            possible.put("401", "The operation needs credentials");
        }
        possible.put("403", "The caller does not hold the permission");
        if (route.template().indexOf('{') >= 0) {
            possible.put("404", "There is no such model or version");
        }
        if (kind == Operation.INFERENCE) {
            possible.put("429", "The queue is full, or a quota or a limit of memory is reached");
            possible.put("503", "The model is not available, or the server is shutting down");
            possible.put("504", "The time limit has passed");
        }
        possible.put("500", "An error of the server or of the model");
        possible.forEach((status, description) -> {
            if (!responses.containsKey(status)) {
                String name = descriptions.protocol() + "-" + (own == null ? "" : own(own) + "-") + status;
                kind("responses").putIfAbsent(name, object("description", description, "content", json(body)));
                responses.put(status, reference("responses", name));
            }
        });
        operation.put("responses", responses);
    }

    /** The name of the schema that an operation's own errors have. */
    private static String own(Object reference) {
        String target = reference instanceof Map<?, ?> map ? String.valueOf(map.get("$ref")) : "own";
        return target.substring(target.lastIndexOf('/') + 1);
    }

    /**
     * The document.
     *
     * @param server where the paths begin, relative to the document
     */
    Map<String, @Nullable Object> document(String title, String version, String description, String server) {
        Map<String, @Nullable Object> document = object(
                "openapi", "3.0.3", "info", object("title", title, "version", version, "description", description));
        document.put("servers", List.of(object("url", server)));
        document.put(
                "tags",
                tags.entrySet().stream()
                        .filter(tag -> usedTags.contains(tag.getKey()))
                        .map(Map.Entry::getValue)
                        .toList());
        document.put("paths", paths);
        if (!prefixes.isEmpty()) {
            document.put("x-nereid-prefixes", prefixes);
        }
        document.put("components", used());
        return document;
    }

    /** The components that paths refer to, and those that these refer to. */
    private Map<String, @Nullable Object> used() {
        Set<String> targets = new LinkedHashSet<>();
        OpenApiNodes.references(paths, targets);
        List<String> todo = new ArrayList<>(targets);
        while (!todo.isEmpty()) {
            Set<String> more = new LinkedHashSet<>();
            OpenApiNodes.references(component(todo.remove(todo.size() - 1)), more);
            for (String target : more) {
                if (targets.add(target)) {
                    todo.add(target);
                }
            }
        }
        Map<String, @Nullable Object> result = object();
        components.forEach((kind, named) -> {
            Map<String, @Nullable Object> kept = object();
            named.forEach((name, value) -> {
                if (targets.contains("#/components/" + kind + "/" + name)) {
                    kept.put(name, value);
                }
            });
            if (!kept.isEmpty()) {
                result.put(kind, kept);
            }
        });
        if (!schemes.isEmpty()) {
            result.put("securitySchemes", schemes);
        }
        return result;
    }

    private @Nullable Object component(String target) {
        String[] parts = target.split("/", -1);
        return parts.length == 4 ? kind(parts[2]).get(parts[3]) : null;
    }
}
