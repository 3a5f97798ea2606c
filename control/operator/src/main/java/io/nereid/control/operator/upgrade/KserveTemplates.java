// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.upgrade;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Which pod templates of KServe's controller stay when the operator takes its Deployments over. KServe's templates lack what its
 * pod webhook adds, so they stay only where the operator's own webhook adds it. Thread-safe.
 *
 * <pre>{@code
 * KserveTemplates templates = KserveTemplates.of(client, true);
 * boolean restartsNothing = templates.isPresent(bareDeployment, storedDeployment);
 * }</pre>
 */
public final class KserveTemplates {
    private static final String MODE = "serving.kserve.io/deploymentMode";

    private static final List<String> UNORDERED =
            List.of("env", "ports", "volumeMounts", "volumes", "tolerations", "imagePullSecrets");

    private final UnaryOperator<ObjectNode> stored;
    private final boolean stay;

    /**
     * @param stored returns what the API server would store of a Deployment that replaces the one of its name
     * @param stay whether the pods of these templates get what they lack when they are created
     */
    KserveTemplates(UnaryOperator<ObjectNode> stored, boolean stay) {
        this.stored = stored;
        this.stay = stay;
    }

    /**
     * The templates of a cluster.
     *
     * @param stay whether the operator's webhook adds to pods what KServe's does
     */
    public static KserveTemplates of(ClusterClient client, boolean stay) {
        return new KserveTemplates(deployment -> client.dryRunUpdate(ClusterKinds.DEPLOYMENT, deployment), stay);
    }

    /** Templates of which none stays. */
    public static KserveTemplates none() {
        return new KserveTemplates(deployment -> deployment, false);
    }

    boolean stay() {
        return stay;
    }

    /** The bare form of an object; null for none. */
    static @Nullable ObjectNode find(List<ObjectNode> bare, ObjectNode object) {
        for (ObjectNode one : bare) {
            if (one.path("kind").equals(object.path("kind"))
                    && one.path("metadata")
                            .path("name")
                            .equals(object.path("metadata").path("name"))) {
                return one;
            }
        }
        return null;
    }

    /**
     * Whether a stored Deployment has the template that KServe's controller would write now. It is found as that controller
     * finds it: by an update that the API server completes and does not store. Blocks for one request.
     *
     * @param bare the Deployment as KServe would write it
     */
    public boolean isPresent(ObjectNode bare, ObjectNode deployment) {
        return difference(bare, deployment).isEmpty();
    }

    /**
     * The path of the first field in which the stored template is not the one that KServe's controller would write now; empty
     * when there is none.
     */
    public String difference(ObjectNode bare, ObjectNode deployment) {
        ObjectNode whole;
        try {
            whole = stored.apply(bare);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INVALID_ARGUMENT || e.code() == ErrorCode.PERMISSION_DENIED) {
                return "spec.template: " + e.getMessage();
            }
            throw e;
        }
        return difference("spec.template", template(whole), template(deployment));
    }

    /** The template in the words of KServe since 0.16, whose mode was called RawDeployment before. */
    private static JsonNode template(ObjectNode deployment) {
        ObjectNode template = deployment.path("spec").path("template").deepCopy();
        ObjectNode metadata = template.withObjectProperty("metadata");
        metadata.remove("creationTimestamp");
        if (metadata.path("annotations").path(MODE).asText().equals("RawDeployment")) {
            metadata.withObjectProperty("annotations").put(MODE, "Standard");
        }
        template.path("spec").path("initContainers").forEach(KserveTemplates::sort);
        template.path("spec").path("containers").forEach(KserveTemplates::sort);
        sort(template.path("spec"));
        return template;
    }

    /** Sorts the lists whose order has no meaning to a pod. */
    private static void sort(JsonNode parent) {
        for (String list : UNORDERED) {
            if (parent.path(list) instanceof ArrayNode elements) {
                List<JsonNode> sorted = new ArrayList<>();
                elements.forEach(sorted::add);
                sorted.sort(Comparator.comparing(JsonNode::toString));
                elements.removeAll();
                elements.addAll(sorted);
            }
        }
    }

    private static String difference(String path, JsonNode one, JsonNode other) {
        if (one.equals(other)) {
            return "";
        }
        if (one.isObject() && other.isObject()) {
            for (var field : one.properties()) {
                String found = difference(path + "." + field.getKey(), field.getValue(), other.path(field.getKey()));
                if (!found.isEmpty()) {
                    return found;
                }
            }
            for (var field : other.properties()) {
                if (!one.has(field.getKey())) {
                    return path + "." + field.getKey();
                }
            }
            return "";
        }
        if (one.isArray() && other.isArray() && one.size() == other.size()) {
            for (int i = 0; i < one.size(); i++) {
                String found = difference(path + "[" + i + "]", one.get(i), other.get(i));
                if (!found.isEmpty()) {
                    return found;
                }
            }
            return "";
        }
        return path;
    }
}
