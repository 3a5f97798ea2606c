// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.ContainerFailure;
import io.nereid.control.kubernetes.pod.PodNames;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The {@code modelStatus} of a service: the states of the running and of the wanted model, and the last failure in the
 * words of the container that failed. Confined to one planning.
 */
public final class ModelStatus {
    private final ObjectNode tree;

    /** Changes the field of this status. */
    public ModelStatus(ObjectNode status) {
        this.tree = Trees.object(status, "modelStatus");
        if (!tree.has("transitionStatus")) {
            tree.put("transitionStatus", "");
        }
    }

    /** The specification cannot run. */
    public void invalid(String reason, String message) {
        tree.put("transitionStatus", "InvalidSpec");
        states().put("targetModelState", "FailedToLoad");
        failure(reason, message, null);
    }

    /**
     * Judges the pods of the predictor.
     *
     * @param pods those of the newest revision or of the Deployment
     * @param ready whether the service is ready with them
     */
    public void pods(List<ObjectNode> pods, boolean ready) {
        pods(pods, ready, false);
    }

    /**
     * Judges the pods of a predictor that may have none.
     *
     * @param failed whether it has none because something failed
     */
    public void pods(List<ObjectNode> pods, boolean ready, boolean failed) {
        ObjectNode copies = Trees.object(tree, "copies");
        copies.put("failedCopies", 0);
        int serving =
                (int) pods.stream().filter(pod -> Trees.isTrue(pod, "Ready")).count();
        copies.remove("totalCopies");
        if (serving > 0) {
            copies.put("totalCopies", serving);
        }
        if (pods.isEmpty()) {
            state(failed ? "FailedToLoad" : "Pending", failed ? "BlockedByFailedLoad" : "InProgress");
            return;
        }
        ObjectNode newest = pods.stream()
                .max(Comparator.comparing(
                        one -> one.path("metadata").path("creationTimestamp").asText("")))
                .orElseThrow();
        for (JsonNode container : newest.path("status").path("initContainerStatuses")) {
            if (container.path("name").asText().equals(PodNames.INITIALIZER)) {
                JsonNode state = container.path("state");
                if (state.has("running")) {
                    if (!container.path("lastState").has("terminated")) {
                        state("Loading", "InProgress");
                    }
                    return;
                }
                if (failed(container)) {
                    return;
                }
            }
        }
        if (ready) {
            state("Loaded", "UpToDate");
            states().put("activeModelState", "Loaded");
            return;
        }
        for (JsonNode container : newest.path("status").path("containerStatuses")) {
            if (container.path("name").asText().equals(PodNames.MAIN) && !failed(container)) {
                state("Pending", "InProgress");
            }
        }
    }

    /** Records the failure of a container that ended with an error, or is started again and again. */
    private boolean failed(JsonNode container) {
        ContainerFailure found = ContainerFailure.of(container);
        if (found == null) {
            return false;
        }
        state("FailedToLoad", "BlockedByFailedLoad");
        failure("ModelLoadFailed", found.message(), found.exitCode());
        return true;
    }

    private void state(String target, String transition) {
        states().put("targetModelState", target);
        tree.put("transitionStatus", transition);
    }

    private ObjectNode states() {
        ObjectNode states = Trees.object(tree, "states");
        if (!states.has("activeModelState")) {
            states.put("activeModelState", "");
        }
        return states;
    }

    private void failure(String reason, String message, @Nullable Integer exitCode) {
        ObjectNode failure = tree.putObject("lastFailureInfo");
        if (exitCode != null && exitCode != 0) {
            failure.put("exitCode", exitCode);
        }
        failure.put("reason", reason);
        if (!message.isEmpty()) {
            failure.put("message", message);
        }
    }
}
