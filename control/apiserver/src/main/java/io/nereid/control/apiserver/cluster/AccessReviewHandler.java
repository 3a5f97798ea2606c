// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.apiserver.http.ApiRequest;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.transport.api.HttpExchange;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Answers what a caller may do, which {@code kubectl auth can-i} and {@code kubectl auth whoami} ask: the reviews of
 * {@code authorization.k8s.io} and {@code authentication.k8s.io} about oneself. Thread-safe: stateless.
 */
public final class AccessReviewHandler {
    private static final String AUTHORIZATION = "authorization.k8s.io";
    private static final String AUTHENTICATION = "authentication.k8s.io";
    private static final String ACCESS = "selfsubjectaccessreviews";
    private static final String RULES = "selfsubjectrulesreviews";

    private static final Set<String> READING = Set.of("get", "list", "watch");
    private static final Set<String> VERBS =
            Set.of("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*");

    /** The resources, by group; clients look them up before they ask. */
    public static final Map<String, List<ResourceKind>> KINDS = Map.of(
            AUTHORIZATION,
            List.of(
                    review(AUTHORIZATION, "SelfSubjectAccessReview", ACCESS),
                    review(AUTHORIZATION, "SelfSubjectRulesReview", RULES)),
            AUTHENTICATION,
            List.of(review(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews")));

    private static ResourceKind review(String group, String kind, String plural) {
        String singular = plural.substring(0, plural.length() - 1);
        return new ResourceKind(group, "v1", kind, plural, singular, List.of(), false, List.of());
    }

    /** Whether a kind is one of these reviews. */
    public static boolean has(ResourceKind kind) {
        return KINDS.getOrDefault(kind.group(), List.of()).contains(kind);
    }

    /** Whether a path is that of a review, which changes nothing although it is posted. */
    public static boolean isReview(String path) {
        return path.startsWith("/apis/" + AUTHORIZATION + "/v1/self")
                || path.startsWith("/apis/" + AUTHENTICATION + "/v1/self");
    }

    /** The review of a request; null if the path is not that of a review. */
    public @Nullable ApiResponse answer(String group, String plural, ApiRequest request) {
        ResourceKind kind = KINDS.getOrDefault(group, List.of()).stream()
                .filter(one -> one.plural().equals(plural))
                .findFirst()
                .orElse(null);
        if (kind == null) {
            return null;
        }
        ObjectNode review = request.resource();
        review.put("apiVersion", kind.apiVersion()).put("kind", kind.kind());
        review.withObjectProperty("metadata").putNull("creationTimestamp");
        ObjectNode status = review.putObject("status");
        switch (plural) {
            case ACCESS -> access(review.path("spec"), status, request.exchange());
            case RULES -> rules(review.path("spec").path("namespace").asText("default"), status, request.exchange());
            default ->
                status.putObject("userInfo")
                        .put("username", request.exchange().caller().name());
        }
        return ApiResponse.of(201, review, List.of());
    }

    private static void access(JsonNode spec, ObjectNode status, HttpExchange exchange) {
        JsonNode resource = spec.path("resourceAttributes");
        String verb = resource.path("verb").asText("");
        if (resource.isMissingNode() || resource.isNull()) {
            decide(
                    status,
                    exchange,
                    spec.path("nonResourceAttributes").path("verb").asText("get"),
                    Caller.ALL);
            return;
        }
        String group = resource.path("group").asText("");
        String plural = resource.path("resource").asText("");
        String subresource = resource.path("subresource").asText("");
        boolean logs = plural.equals("pods") && (subresource.isEmpty() || subresource.equals("log"));
        boolean known = plural.equals("*") || ClusterKinds.exists(group, plural) || logs && group.isEmpty();
        boolean readOnly = logs || ClusterKinds.byPlural(group, plural) != null;
        if (!known || !VERBS.contains(verb) || readOnly && !READING.contains(verb)) {
            status.put("allowed", false)
                    .put(
                            "reason",
                            "this server has no " + (known ? "verb " + verb + " for " : "") + plural
                                    + (group.isEmpty() ? "" : "." + group));
            return;
        }
        String namespace = resource.path("namespace").asText("");
        decide(status, exchange, verb, namespace.isEmpty() ? Caller.ALL : namespace);
    }

    private static void decide(ObjectNode status, HttpExchange exchange, String verb, String scope) {
        ServingException refusal = refusal(exchange, verb, scope);
        status.put("allowed", refusal == null);
        if (refusal != null) {
            status.put("reason", refusal.describe());
        }
    }

    private static @Nullable ServingException refusal(HttpExchange exchange, String verb, String scope) {
        try {
            exchange.require(READING.contains(verb) ? Permission.CONTROL_READ : Permission.CONTROL, scope);
            return null;
        } catch (ServingException e) {
            return e;
        }
    }

    private static void rules(String namespace, ObjectNode status, HttpExchange exchange) {
        status.put("incomplete", false);
        ArrayNode rules = status.putArray("resourceRules");
        boolean reads = refusal(exchange, "get", namespace) == null;
        boolean writes = refusal(exchange, "create", namespace) == null;
        if (reads || writes) {
            for (String group : List.of("", ResourceKinds.SERVING)) {
                ObjectNode rule = rules.addObject();
                ArrayNode verbs = rule.putArray("verbs");
                VERBS.stream()
                        .filter(verb -> !verb.equals("*") && (READING.contains(verb) ? reads : writes))
                        .sorted()
                        .forEach(verbs::add);
                rule.putArray("apiGroups").add(group);
                ArrayNode resources = rule.putArray("resources");
                ResourceKinds.all().stream()
                        .filter(kind -> kind.group().equals(group))
                        .forEach(kind -> resources.add(kind.plural()));
            }
        }
        if (reads) {
            ObjectNode pods = rules.addObject();
            READING.stream().sorted().forEach(pods.putArray("verbs")::add);
            pods.putArray("apiGroups").add("");
            pods.putArray("resources").add("pods").add("pods/log");
        }
        status.putArray("nonResourceRules");
    }
}
