// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.admission.Admission;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Answers AdmissionReviews ({@code admission.k8s.io/v1}) with the admission that the control API of one machine has. It
 * changes nothing: defaults stay out of the stored resource. Thread-safe.
 *
 * <pre>{@code
 * AdmissionReviewer reviewer = new AdmissionReviewer(
 *         new Admission(context, Site.KUBERNETES), new Admission(context.latest(), Site.KUBERNETES));
 * ObjectNode answer = reviewer.review(review);
 * }</pre>
 */
final class AdmissionReviewer {
    private static final String VERSION = "admission.k8s.io/v1";

    private final Admission admission;
    private final Admission latest;
    private final @Nullable LocalModelReviews localModels;

    /** A reviewer that judges resources by themselves. */
    AdmissionReviewer(Admission admission, Admission latest) {
        this(admission, latest, null);
    }

    /**
     * @param admission judges every resource, from what this replica knows
     * @param latest judges again what would be refused, from what the API server has at that time
     * @param localModels judges caches of models beside the other resources; null for not at all
     */
    AdmissionReviewer(Admission admission, Admission latest, @Nullable LocalModelReviews localModels) {
        this.admission = admission;
        this.latest = latest;
        this.localModels = localModels;
    }

    /**
     * The review with its response. A resource is refused as KServe's webhook refuses it: 403, with all problems in the
     * message.
     *
     * @throws ServingException INVALID_ARGUMENT for what is not a review
     */
    ObjectNode review(JsonNode review) {
        JsonNode request = request(review);
        ObjectNode answer = answer(request);
        ObjectNode response = (ObjectNode) answer.get("response");
        try {
            List<String> warnings = warnings(request);
            if (localModels != null) {
                localModels.check(request);
            }
            response.put("allowed", true);
            if (!warnings.isEmpty()) {
                warnings.forEach(response.putArray("warnings")::add);
            }
        } catch (ServingException e) {
            if (e.code() != ErrorCode.INVALID_ARGUMENT) {
                throw e;
            }
            refuse(response, e.describe());
        }
        return answer;
    }

    /**
     * The request of a review.
     *
     * @throws ServingException INVALID_ARGUMENT for what is not a review
     */
    static JsonNode request(JsonNode review) {
        JsonNode request = review.path("request");
        if (!review.path("apiVersion").asText("").equals(VERSION) || !request.hasNonNull("uid")) {
            throw ServingException.invalidArgument(
                    "the body is not an AdmissionReview of " + VERSION + " with a request");
        }
        return request;
    }

    /** A review with an empty response to a request. */
    static ObjectNode answer(JsonNode request) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.put("apiVersion", VERSION).put("kind", "AdmissionReview");
        answer.putObject("response").put("uid", request.path("uid").asText());
        return answer;
    }

    /** Makes a response a refusal. */
    static void refuse(ObjectNode response, String message) {
        response.put("allowed", false);
        response.putObject("status")
                .put("status", "Failure")
                .put("code", 403)
                .put("reason", "Forbidden")
                .put("message", message);
    }

    private List<String> warnings(JsonNode request) {
        String operation = request.path("operation").asText("");
        boolean written = operation.equals("CREATE") || operation.equals("UPDATE");
        if (!written || !(request.get("object") instanceof ObjectNode object)) {
            return List.of();
        }
        ResourceKind kind = ResourceKinds.byKind(
                object.path("apiVersion").asText(""), object.path("kind").asText(""));
        ObjectNode old = request.get("oldObject") instanceof ObjectNode before ? before : null;
        if (kind == null
                || !kind.group().equals(ResourceKinds.SERVING) && !kind.equals(ResourceKinds.NAMESPACE)
                || object.path("metadata").hasNonNull("deletionTimestamp")
                || untouched(object, old)) {
            return List.of();
        }
        if (kind.equals(ResourceKinds.NAMESPACE)) {
            // All else of a namespace is Kubernetes' own.
            ServingEngine unused = ServingEngine.chosenBy(ObjectMeta.read(object));
            return List.of();
        }
        try {
            return admission.admit(kind, object, old).warnings();
        } catch (ServingException e) {
            if (e.code() != ErrorCode.INVALID_ARGUMENT) {
                throw e;
            }
            return latest.admit(kind, object, old).warnings();
        }
    }

    /**
     * Whether nothing changes that admission looks at. Finalizers and owners of a service must remain writable although
     * rules have become stricter since it was stored.
     */
    private static boolean untouched(ObjectNode object, @Nullable ObjectNode old) {
        if (old == null || Admission.specChanged(old, object)) {
            return false;
        }
        JsonNode metadata = object.path("metadata");
        JsonNode before = old.path("metadata");
        return metadata.path("labels").equals(before.path("labels"))
                && metadata.path("annotations").equals(before.path("annotations"));
    }
}
