// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.admission.InferenceServiceDefaulter;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.pod.PodInjection;
import io.nereid.control.kubernetes.pod.PodNames;
import io.nereid.control.operator.cluster.ClusterClient;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * Answers reviews of pods that come from a template of KServe's controller: adds what KServe's pod webhook adds, with the code that
 * puts it into the operator's own templates. Pods of the operator's templates have it already, and are not sent here.
 * Such a pod without its model would start and fail, so a pod that cannot be completed is refused, and its ReplicaSet
 * tries again. Thread-safe.
 *
 * <pre>{@code
 * ObjectNode answer = new PodMutator(context, client, "nereid").review(review);
 * }</pre>
 */
final class PodMutator {
    private final AdmissionContext context;
    private final ClusterClient client;
    private final String home;

    /** @param home the operator's own namespace */
    PodMutator(AdmissionContext context, ClusterClient client, String home) {
        this.context = context;
        this.client = client;
        this.home = home;
    }

    /**
     * The review with its response.
     *
     * @throws ServingException INVALID_ARGUMENT for what is not a review; UNAVAILABLE while the API server cannot be asked
     */
    ObjectNode review(JsonNode review) {
        JsonNode request = AdmissionReviewer.request(review);
        ObjectNode answer = AdmissionReviewer.answer(request);
        ObjectNode response = (ObjectNode) answer.get("response");
        response.put("allowed", true);
        if (!(request.get("object") instanceof ObjectNode pod)
                || !pod.path("kind").asText().equals("Pod")
                || !request.path("operation").asText().equals("CREATE")) {
            return answer;
        }
        try {
            ObjectNode changed = complete(pod, request.path("namespace").asText());
            ArrayNode patch = JsonNodeFactory.instance.arrayNode();
            add(patch, "/spec", pod.path("spec"), changed.path("spec"));
            add(
                    patch,
                    "/metadata/annotations",
                    pod.path("metadata").path("annotations"),
                    changed.path("metadata").path("annotations"));
            if (!patch.isEmpty()) {
                response.put("patchType", "JSONPatch");
                response.put(
                        "patch",
                        Base64.getEncoder().encodeToString(patch.toString().getBytes(StandardCharsets.UTF_8)));
            }
        } catch (ServingException e) {
            if (e.code() != ErrorCode.INVALID_ARGUMENT && e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
            AdmissionReviewer.refuse(response, e.describe());
        }
        return answer;
    }

    private static void add(ArrayNode patch, String path, JsonNode before, JsonNode after) {
        if (!after.equals(before)) {
            patch.addObject().put("op", "add").put("path", path).set("value", after);
        }
    }

    /** A copy of a pod with what its annotations ask for. */
    private ObjectNode complete(ObjectNode pod, String namespace) {
        String name =
                pod.path("metadata").path("labels").path(PodNames.SERVICE_LABEL).asText();
        ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, namespace, name);
        if (service == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "the InferenceService " + namespace + "/" + name + " of the label " + PodNames.SERVICE_LABEL
                            + " does not exist; create it, or take the label away");
        }
        InferenceServiceConfig config = context.config(namespace);
        ObjectNode own = client.get(ResourceKinds.CONFIG_MAP, namespace, InferenceServiceConfig.CONFIG_MAP);
        if (own != null && !namespace.equals(home)) {
            config = config.with(own).forNamespace(namespace);
        }
        new InferenceServiceDefaulter(config).apply(service, null);
        ObservedCluster cluster = new ObservedCluster(
                Map.of(),
                List.of(),
                MissingNode.getInstance(),
                secret -> client.get(ResourceKinds.SECRET, namespace, secret),
                account -> client.get(ResourceKinds.SERVICE_ACCOUNT, namespace, account),
                map -> client.get(ResourceKinds.CONFIG_MAP, home, map));
        ObjectNode changed = pod.deepCopy();
        new PodInjection(
                        InferenceService.read(service),
                        ClusterSettings.of(config),
                        cluster,
                        context.storageContainers())
                .into(changed);
        return changed;
    }
}
