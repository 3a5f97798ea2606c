// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.PodNames;
import java.util.List;

/**
 * The resources that containers which ask for none got by default when they were made: another default in the settings
 * must not restart the pods of a service that did not change. Stateless.
 */
public final class RunningDefaults {
    private RunningDefaults() {}

    /**
     * Fills the resources that run into the service, where it leaves them out.
     *
     * @param kind the kind of what runs, as {@link Trees#kind}
     */
    public static void keep(ObjectNode service, ObservedCluster cluster, String kind) {
        String name = service.path("metadata").path("name").asText();
        JsonNode spec = service.path("spec");
        JsonNode predictor = spec.path("predictor");
        if (!predictor.has("model")) {
            keep(
                    predictor,
                    cluster,
                    kind,
                    ComponentPlanner.predictorName(name, predictor.path("name").asText("")));
        }
        keep(spec.path("transformer"), cluster, kind, name + "-transformer");
        keep(spec.path("explainer"), cluster, kind, name + "-explainer");
    }

    private static void keep(JsonNode component, ObservedCluster cluster, String kind, String name) {
        ObjectNode deployment = cluster.object(kind, name);
        if (deployment == null) {
            return;
        }
        ObjectNode running = Trees.named(deployment.at("/spec/template/spec/containers"), PodNames.MAIN);
        JsonNode written = component.path("art");
        if (!written.isObject()) {
            ObjectNode named = Trees.named(component.path("containers"), PodNames.MAIN);
            written = named == null ? component.path("containers").path(0) : named;
        }
        if (running == null || !(written instanceof ObjectNode container)) {
            return;
        }
        for (String part : List.of("limits", "requests")) {
            for (String resource : List.of("cpu", "memory")) {
                JsonNode value = running.path("resources").path(part).path(resource);
                if (value.isTextual() && !container.path("resources").path(part).has(resource)) {
                    Trees.object(Trees.object(container, "resources"), part).set(resource, value);
                }
            }
        }
    }
}
