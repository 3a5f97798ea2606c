// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.cluster.ClusterClient;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Asks the API server by {@code TokenReview} (authentication.k8s.io/v1) and {@code SubjectAccessReview}
 * (authorization.k8s.io/v1). Thread-safe.
 */
final class ClusterAccessApi implements AccessApi {
    private static final ResourceKind TOKEN_REVIEW = kind("authentication.k8s.io", "TokenReview", "tokenreviews");
    private static final ResourceKind ACCESS_REVIEW =
            kind("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews");

    private final ClusterClient client;

    ClusterAccessApi(ClusterClient client) {
        this.client = client;
    }

    private static ResourceKind kind(String group, String kind, String plural) {
        return new ResourceKind(group, "v1", kind, plural, plural, List.of(), false, List.of());
    }

    private static ObjectNode review(ResourceKind kind) {
        return JsonNodeFactory.instance
                .objectNode()
                .put("apiVersion", kind.apiVersion())
                .put("kind", kind.kind());
    }

    @Override
    public @Nullable Identity identify(String token, List<String> audiences) {
        ObjectNode review = review(TOKEN_REVIEW);
        ObjectNode spec = review.putObject("spec").put("token", token);
        if (!audiences.isEmpty()) {
            audiences.forEach(spec.putArray("audiences")::add);
        }
        JsonNode status;
        try {
            status = client.create(TOKEN_REVIEW, review).path("status");
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INVALID_ARGUMENT) {
                return null;
            }
            throw e;
        }
        if (!status.path("authenticated").asBoolean()) {
            return null;
        }
        // An authenticator that knows no audiences takes a token for the API server for any of them.
        if (!audiences.isEmpty() && texts(status.path("audiences")).stream().noneMatch(audiences::contains)) {
            return null;
        }
        JsonNode user = status.path("user");
        Map<String, List<String>> extra = new LinkedHashMap<>();
        user.path("extra").properties().forEach(entry -> extra.put(entry.getKey(), texts(entry.getValue())));
        String name = user.path("username").asText("");
        return name.isEmpty()
                ? null
                : new Identity(name, user.path("uid").asText(""), texts(user.path("groups")), extra);
    }

    private static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(item -> texts.add(item.asText()));
        return List.copyOf(texts);
    }

    @Override
    public boolean allows(Identity identity, Right right) {
        ObjectNode review = review(ACCESS_REVIEW);
        ObjectNode spec = review.putObject("spec");
        spec.putObject("resourceAttributes")
                .put("group", ResourceKinds.SERVING)
                .put("resource", right.resource())
                .put("namespace", right.namespace())
                .put("name", right.name())
                .put("verb", right.verb());
        spec.put("user", identity.name());
        if (!identity.uid().isEmpty()) {
            spec.put("uid", identity.uid());
        }
        identity.groups().forEach(spec.putArray("groups")::add);
        ObjectNode extra = spec.putObject("extra");
        identity.extra().forEach((key, values) -> {
            ArrayNode list = extra.putArray(key);
            values.forEach(list::add);
        });
        JsonNode status = client.create(ACCESS_REVIEW, review).path("status");
        return status.path("allowed").asBoolean() && !status.path("denied").asBoolean();
    }
}
