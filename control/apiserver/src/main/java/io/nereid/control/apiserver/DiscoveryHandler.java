// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.schema.ResourceSchemas;
import io.nereid.control.apiserver.cluster.AccessReviewHandler;
import io.nereid.control.apiserver.cluster.ClusterKinds;
import io.nereid.control.apiserver.http.ApiRequest;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.pod.PodView;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Serves API discovery: groups, versions, resources and OpenAPI schemas, which clients such as kubectl request before
 * anything else. Immutable.
 */
final class DiscoveryHandler {
    static final List<String> VERBS =
            List.of("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch");
    private static final List<String> READ_VERBS = List.of("get", "list", "watch");
    private static final List<String> STATUS_VERBS = List.of("get", "patch", "update");
    private static final String AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList";

    private final List<ResourceKind> kinds;
    private final String version;

    DiscoveryHandler(List<ResourceKind> kinds, String version) {
        this.kinds = kinds;
        this.version = version;
    }

    /**
     * The kinds of a group by version, the preferred version first. Of two early versions clients prefer the first that has
     * a kind, so the later one comes first.
     */
    private Map<String, List<ResourceKind>> versions(String group) {
        Map<String, List<ResourceKind>> found = new LinkedHashMap<>();
        for (ResourceKind kind : kinds) {
            if (kind.group().equals(group)) {
                found.computeIfAbsent(kind.version(), v -> new ArrayList<>()).add(kind);
            }
        }
        Map<String, List<ResourceKind>> ordered = new LinkedHashMap<>();
        found.keySet().stream()
                .sorted(Comparator.comparing((String v) -> v.contains("alpha"))
                        .thenComparingInt(
                                v -> v.contains("alpha") ? -Integer.parseInt(v.substring(v.lastIndexOf('a') + 1)) : 0))
                .forEach(v -> ordered.put(v, found.getOrDefault(v, List.of())));
        return ordered;
    }

    private Set<String> groups() {
        Set<String> groups = new LinkedHashSet<>();
        kinds.forEach(kind -> groups.add(kind.group()));
        groups.remove("");
        return groups;
    }

    ObjectNode version() {
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        tree.put("major", "1")
                .put("minor", "32")
                .put("gitVersion", "v1.32.0+nereid-" + version)
                .put("gitCommit", "")
                .put("gitTreeState", "")
                .put("buildDate", "1970-01-01T00:00:00Z")
                .put("goVersion", "")
                .put("compiler", "")
                .put("platform", System.getProperty("os.name", "") + "/" + System.getProperty("os.arch", ""));
        return tree;
    }

    /** {@code /api}. */
    ApiResponse core(ApiRequest request) {
        String type = aggregatedType(request);
        if (type != null) {
            return aggregated(type, List.of(""));
        }
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        tree.put("kind", "APIVersions");
        tree.putArray("versions").add("v1");
        tree.putArray("serverAddressByClientCIDRs");
        return ApiResponse.ok(tree);
    }

    /** {@code /apis}. */
    ApiResponse groups(ApiRequest request) {
        String type = aggregatedType(request);
        if (type != null) {
            return aggregated(type, groups());
        }
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        tree.put("kind", "APIGroupList").put("apiVersion", "v1");
        ArrayNode list = tree.putArray("groups");
        groups().forEach(group -> list.add(group(group)));
        return ApiResponse.ok(tree);
    }

    /** {@code /apis/GROUP}. */
    ObjectNode group(String group) {
        Map<String, List<ResourceKind>> versions = versions(group);
        if (versions.isEmpty()) {
            throw ApiRequest.notFound();
        }
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        tree.put("kind", "APIGroup").put("apiVersion", "v1").put("name", group);
        ArrayNode list = tree.putArray("versions");
        for (String one : versions.keySet()) {
            list.addObject().put("groupVersion", group + "/" + one).put("version", one);
        }
        tree.set("preferredVersion", list.get(0).deepCopy());
        return tree;
    }

    /** {@code /api/v1} and {@code /apis/GROUP/VERSION}. */
    ObjectNode resources(String group, String version) {
        List<ResourceKind> found = versions(group).get(version);
        if (found == null) {
            throw ApiRequest.notFound();
        }
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        tree.put("kind", "APIResourceList")
                .put("apiVersion", "v1")
                .put("groupVersion", group.isEmpty() ? version : group + "/" + version);
        ArrayNode list = tree.putArray("resources");
        for (ResourceKind kind : found) {
            ObjectNode one = list.addObject();
            one.put("name", kind.plural())
                    .put("singularName", kind.singular())
                    .put("namespaced", kind.namespaced())
                    .put("kind", kind.kind());
            texts(one.putArray("verbs"), verbs(kind));
            if (!kind.shortNames().isEmpty()) {
                texts(one.putArray("shortNames"), kind.shortNames());
            }
            categories(kind, one);
            if (kind == PodView.KIND) {
                ObjectNode log = list.addObject();
                log.put("name", "pods/log")
                        .put("singularName", "")
                        .put("namespaced", true)
                        .put("kind", "Pod");
                log.putArray("verbs").add("get");
            }
            if (kind.hasStatus()) {
                ObjectNode status = list.addObject();
                status.put("name", kind.plural() + "/status")
                        .put("singularName", "")
                        .put("namespaced", kind.namespaced())
                        .put("kind", kind.kind());
                texts(status.putArray("verbs"), STATUS_VERBS);
            }
        }
        return tree;
    }

    private static @org.jspecify.annotations.Nullable String aggregatedType(ApiRequest request) {
        for (String accepted : request.accepted()) {
            if (accepted.startsWith("application/json") && accepted.contains("as=APIGroupDiscoveryList")) {
                return accepted.contains("v=v2beta1") ? "v2beta1" : "v2";
            }
        }
        return null;
    }

    private ApiResponse aggregated(String form, Iterable<String> groups) {
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        tree.put("kind", "APIGroupDiscoveryList").put("apiVersion", "apidiscovery.k8s.io/" + form);
        tree.putObject("metadata");
        ArrayNode items = tree.putArray("items");
        for (String group : groups) {
            ObjectNode item = items.addObject();
            ObjectNode metadata = item.putObject("metadata");
            if (!group.isEmpty()) {
                metadata.put("name", group);
            }
            metadata.putNull("creationTimestamp");
            ArrayNode versions = item.putArray("versions");
            versions(group).forEach((v, kinds) -> {
                ObjectNode one = versions.addObject();
                one.put("version", v).put("freshness", "Current");
                ArrayNode resources = one.putArray("resources");
                kinds.forEach(kind -> aggregated(kind, resources.addObject()));
            });
        }
        return new ApiResponse(200, tree, AGGREGATED.replace("%s", form), List.of());
    }

    private static void aggregated(ResourceKind kind, ObjectNode tree) {
        tree.put("resource", kind.plural());
        gvk(kind, tree.putObject("responseKind"));
        tree.put("scope", kind.namespaced() ? "Namespaced" : "Cluster").put("singularResource", kind.singular());
        texts(tree.putArray("verbs"), verbs(kind));
        if (!kind.shortNames().isEmpty()) {
            texts(tree.putArray("shortNames"), kind.shortNames());
        }
        categories(kind, tree);
        if (kind == PodView.KIND) {
            ObjectNode log = tree.putArray("subresources").addObject();
            log.put("subresource", "log");
            gvk(kind, log.putObject("responseKind"));
            log.putArray("verbs").add("get");
        }
        if (kind.hasStatus()) {
            ObjectNode status = tree.putArray("subresources").addObject();
            status.put("subresource", "status");
            gvk(kind, status.putObject("responseKind"));
            texts(status.putArray("verbs"), STATUS_VERBS);
        }
    }

    private static List<String> verbs(ResourceKind kind) {
        if (AccessReviewHandler.has(kind)) {
            return List.of("create");
        }
        return readOnly(kind) ? READ_VERBS : VERBS;
    }

    /** Whether a kind only shows what there is. */
    private static boolean readOnly(ResourceKind kind) {
        return kind == PodView.KIND || ClusterKinds.has(kind);
    }

    private static void categories(ResourceKind kind, ObjectNode tree) {
        if (kind.group().startsWith("serving.")) {
            tree.putArray("categories").add("all").add("kserve");
        } else if (kind == PodView.KIND) {
            tree.putArray("categories").add("all");
        }
    }

    private static void gvk(ResourceKind kind, ObjectNode tree) {
        tree.put("group", kind.group()).put("version", kind.version()).put("kind", kind.kind());
    }

    private static void texts(ArrayNode array, List<String> texts) {
        texts.forEach(array::add);
    }

    /** {@code /openapi/v3}. */
    ObjectNode openApiIndex() {
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        ObjectNode paths = tree.putObject("paths");
        for (ResourceKind kind : kinds) {
            String path = root(kind);
            paths.putObject(path)
                    .put(
                            "serverRelativeURL",
                            "/openapi/v3/" + path + "?hash=" + Integer.toHexString(version.hashCode()));
        }
        return tree;
    }

    private static String root(ResourceKind kind) {
        return kind.group().isEmpty() ? "api/" + kind.version() : "apis/" + kind.apiVersion();
    }

    /** {@code /openapi/v3/apis/GROUP/VERSION}: enough for clients to see that the server validates. */
    ObjectNode openApi(String path) {
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        tree.put("openapi", "3.0.0");
        tree.putObject("info").put("title", "Nereid").put("version", version);
        ObjectNode paths = tree.putObject("paths");
        ObjectNode schemas = tree.putObject("components").putObject("schemas");
        for (ResourceKind kind : kinds) {
            if (!root(kind).equals(path)) {
                continue;
            }
            String base = "/" + path + "/" + (kind.namespaced() ? "namespaces/{namespace}/" : "") + kind.plural();
            ObjectNode item = paths.putObject(base + "/{name}");
            for (String method : readOnly(kind) ? List.of("get") : List.of("get", "put", "patch", "delete")) {
                operation(kind, method, item.putObject(method));
            }
            ObjectNode collection = paths.putObject(base);
            operation(kind, "get", collection.putObject("get"));
            if (!readOnly(kind)) {
                operation(kind, "post", collection.putObject("post"));
            }
            schema(kind, schemas.putObject(schemaName(kind)));
        }
        if (schemas.isEmpty()) {
            throw ApiRequest.notFound();
        }
        return tree;
    }

    private static String schemaName(ResourceKind kind) {
        return kind.group().isEmpty()
                ? "io.k8s.api.core." + kind.version() + "." + kind.kind()
                : "io.kserve.serving." + kind.version() + "." + kind.kind();
    }

    private static void operation(ResourceKind kind, String method, ObjectNode tree) {
        tree.put("operationId", method + kind.version() + kind.kind());
        ArrayNode parameters = tree.putArray("parameters");
        if (!method.equals("get")) {
            for (String name : List.of("dryRun", "fieldManager", "fieldValidation")) {
                parameter(parameters, name, "string");
            }
        }
        if (method.equals("patch")) {
            parameter(parameters, "force", "boolean");
        }
        ObjectNode ok = tree.putObject("responses").putObject("200");
        ok.put("description", "OK");
        ok.putObject("content")
                .putObject("application/json")
                .putObject("schema")
                .put("$ref", "#/components/schemas/" + schemaName(kind));
        tree.put("x-kubernetes-action", method);
        gvk(kind, tree.putObject("x-kubernetes-group-version-kind"));
    }

    private static void parameter(ArrayNode parameters, String name, String type) {
        ObjectNode parameter = parameters.addObject();
        parameter.put("name", name).put("in", "query");
        parameter.putObject("schema").put("type", type);
    }

    /** The schema with all fields that are checked, which {@code kubectl explain} shows in depth. */
    private static void schema(ResourceKind kind, ObjectNode tree) {
        boolean checked = ResourceKinds.byPlural(kind.group(), kind.plural()) != null;
        if (checked) {
            tree.setAll(ResourceSchemas.of(kind).openApi());
        }
        tree.put("type", "object");
        tree.put("description", kind.kind() + " of " + kind.apiVersion() + ", checked by the server.");
        ObjectNode properties = tree.withObjectProperty("properties");
        properties.putObject("apiVersion").put("type", "string").put("description", kind.apiVersion());
        properties.putObject("kind").put("type", "string").put("description", kind.kind());
        ObjectNode metadata = properties.withObjectProperty("metadata");
        if (!metadata.has("properties")) {
            open(metadata, "name, namespace, labels, annotations");
        }
        if (properties.path("spec") instanceof ObjectNode spec) {
            spec.put("description", "the desired state, with KServe's fields");
        }
        if (!checked || kind.group().isEmpty()) {
            tree.put("x-kubernetes-preserve-unknown-fields", true);
        } else if (kind.hasStatus()) {
            open(properties.putObject("status"), "the observed state, written by the server");
        }
        gvk(kind, tree.putArray("x-kubernetes-group-version-kind").addObject());
    }

    private static void open(ObjectNode tree, String description) {
        tree.put("type", "object").put("description", description).put("x-kubernetes-preserve-unknown-fields", true);
    }
}
