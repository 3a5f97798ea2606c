// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Keeps a service with the runtime that was chosen for it. Stateless. */
public final class ChosenRuntime {
    private ChosenRuntime() {}

    /**
     * A service that names no runtime stays with the one that was chosen until the service changes: a runtime that is
     * added, disabled or deleted must not restart the models of services that run. What no longer fits is said in the
     * status; only when nothing runs is another one chosen. An engine that the service or its namespace chooses later
     * counts at once, if it has a runtime for the model; an engine that the settings choose, when a runtime is chosen
     * anyway.
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
        if (leaves(InferenceService.read(service), chosen, catalog)) {
            return;
        }
        ObjectNode named = service.deepCopy();
        ((ObjectNode) named.at("/spec/predictor/model")).put("runtime", chosen);
        RuntimeSelection selection = RuntimeSelection.of(InferenceService.read(named), catalog);
        if (running || selection != null && selection.chosen() != null) {
            model.put("runtime", chosen);
        }
    }

    /** Whether another engine was chosen than that of the runtime, and has a runtime for the model. */
    private static boolean leaves(InferenceService service, String chosen, RuntimeCatalog catalog) {
        try {
            ServingEngine wanted = catalog.chosenEngine(service.metadata());
            if (wanted == null || engine(chosen, catalog) == wanted) {
                return false;
            }
            RuntimeSelection selection = RuntimeSelection.of(service, catalog);
            ServingRuntime other = selection == null ? null : selection.chosen();
            return other != null && other.engine() == wanted;
        } catch (ServingException e) {
            return false; // an unknown engine, which the status reports
        }
    }

    private static @Nullable ServingEngine engine(String runtime, RuntimeCatalog catalog) {
        for (List<ServingRuntime> scope : List.of(catalog.namespaceRuntimes(), catalog.clusterRuntimes())) {
            for (ServingRuntime one : scope) {
                if (one.name().equals(runtime)) {
                    return one.engine();
                }
            }
        }
        return null;
    }
}
