// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;

/** Keeps a service with the runtime that was chosen for it. Stateless. */
public final class ChosenRuntime {
    private ChosenRuntime() {}

    /**
     * A service that names no runtime stays with the one that was chosen until the service changes: a runtime that is
     * added, disabled or deleted must not restart the models of services that run. What no longer fits is said in the
     * status; only when nothing runs is another one chosen.
     *
     * @param service gets the name of the runtime
     * @param status the last written status of the service
     * @param running whether the service's predictor runs
     */
    public static void keep(ObjectNode service, RuntimeCatalog catalog, JsonNode status, boolean running) {
        String chosen = status.path("servingRuntimeName")
                .asText(status.path("clusterServingRuntimeName").asText(""));
        long generation = service.path("metadata").path("generation").asLong();
        if (chosen.isEmpty()
                || status.path("observedGeneration").asLong(-1) != generation
                || !(service.at("/spec/predictor/model") instanceof ObjectNode model)
                || !model.path("runtime").asText("").isEmpty()) {
            return;
        }
        ObjectNode named = service.deepCopy();
        ((ObjectNode) named.at("/spec/predictor/model")).put("runtime", chosen);
        RuntimeSelection selection = RuntimeSelection.of(InferenceService.read(named), catalog);
        if (running || selection != null && selection.chosen() != null) {
            model.put("runtime", chosen);
        }
    }
}
