// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Whether a component's Deployments serve, by their own conditions, in KServe's order of precedence. Stateless. */
final class DeploymentConditions {
    private DeploymentConditions() {}

    /**
     * The condition of a component.
     *
     * @param status {@code True}, {@code False} or {@code Unknown}
     */
    record Readiness(
            String status,
            @Nullable String reason,
            @Nullable String message) {
        private static Readiness of(JsonNode condition, String status) {
            return new Readiness(
                    status,
                    condition.path("reason").asText(null),
                    condition.path("message").asText(null));
        }
    }

    /** Judges the Deployments of a component: one, or with workers that of the head and that of the workers. */
    static Readiness of(List<ObjectNode> deployments) {
        Readiness ready = new Readiness(LivingConditions.FALSE, null, null);
        JsonNode available = condition(deployments, "Available");
        JsonNode progressing = condition(deployments, "Progressing");
        JsonNode failure = condition(deployments, "ReplicaFailure");
        if (is(available, "True")) {
            ready = Readiness.of(available, LivingConditions.TRUE);
        }
        if (is(progressing, "False")) {
            if (!progressing.path("message").asText("").isEmpty()) {
                ready = Readiness.of(progressing, LivingConditions.FALSE);
            }
        } else if (is(progressing, "True")) {
            if (progressing.path("reason").asText().equals("NewReplicaSetAvailable")) {
                ready = Readiness.of(progressing, LivingConditions.TRUE);
            } else if (!is(available, "True")) {
                ready = Readiness.of(progressing, LivingConditions.UNKNOWN);
            }
        }
        if (is(available, "False")) {
            ready = Readiness.of(available, LivingConditions.FALSE);
        }
        if (is(failure, "True")) {
            ready = Readiness.of(failure, LivingConditions.FALSE);
        }
        return ready;
    }

    /** Whether a Deployment has a replica that serves. */
    static boolean serves(@Nullable ObjectNode deployment) {
        return deployment != null
                && deployment.path("status").path("availableReplicas").asInt() > 0;
    }

    private static boolean is(JsonNode condition, String status) {
        return condition.path("status").asText().equals(status);
    }

    private static JsonNode condition(List<ObjectNode> deployments, String type) {
        List<JsonNode> found = new ArrayList<>();
        List<String> messages = new ArrayList<>();
        List<String> reasons = new ArrayList<>();
        for (ObjectNode deployment : deployments) {
            for (JsonNode one : deployment.path("status").path("conditions")) {
                if (one.path("type").asText().equals(type)) {
                    String container =
                            deployment.path("metadata").path("name").asText().contains("worker")
                                    ? "worker-container: "
                                    : "predictor-container: ";
                    found.add(one);
                    messages.add(container + one.path("message").asText());
                    reasons.add(one.path("reason").asText());
                    break;
                }
            }
        }
        if (found.isEmpty() || found.size() < deployments.size()) {
            return com.fasterxml.jackson.databind.node.MissingNode.getInstance();
        }
        if (found.size() == 1) {
            return found.get(0);
        }
        ObjectNode all = found.get(0).deepCopy();
        boolean whole = found.stream().allMatch(one -> is(one, "True"));
        all.put("status", whole ? "True" : "False");
        all.put("message", String.join(", ", messages));
        all.put("reason", new HashSet<>(reasons).size() == 1 ? reasons.get(0) : String.join(", ", reasons));
        return all;
    }
}
