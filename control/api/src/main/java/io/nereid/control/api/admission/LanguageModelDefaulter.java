// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** The defaults of an LLMInferenceService, as KServe's definition and its webhook set them. Stateless. */
final class LanguageModelDefaulter {
    /** The label of the services that share the traffic of a group. */
    static final String GROUP = "serving.kserve.io/routing-group";

    private LanguageModelDefaulter() {}

    /** Sets the defaults in a resource whose types are right. */
    static void apply(ObjectNode resource) {
        ObjectNode metadata = resource.withObjectProperty("metadata");
        ObjectNode spec = resource.withObjectProperty("spec");
        if (spec.get("model") instanceof ObjectNode model
                && model.path("name").asText("").isEmpty()) {
            model.put("name", metadata.path("name").asText(""));
        }
        String group = spec.path("router").path("route").path("group").asText("");
        if (!group.isEmpty()) {
            metadata.withObjectProperty("labels").put(GROUP, group);
        } else if (metadata.get("labels") instanceof ObjectNode labels) {
            labels.remove(GROUP);
        }
        workload(spec);
        if (spec.get("prefill") instanceof ObjectNode prefill) {
            workload(prefill);
        }
        containers(spec.path("router").path("scheduler"), List.of("template"));
    }

    private static void workload(ObjectNode workload) {
        containers(workload, List.of("template", "worker"));
        if (workload.get("scaling") instanceof ObjectNode scaling) {
            if (!scaling.hasNonNull("minReplicas")) {
                scaling.put("minReplicas", 1);
            }
            if (scaling.get("wva") instanceof ObjectNode wva && !wva.hasNonNull("variantCost")) {
                wva.put("variantCost", "10.0");
            }
        }
        if (workload.get("kvCacheOffloading") instanceof ObjectNode offloading
                && !offloading.hasNonNull("evictionPolicy")) {
            offloading.put("evictionPolicy", "lru");
        }
    }

    /** A pod without containers has an empty list of them. */
    private static void containers(JsonNode owner, List<String> pods) {
        for (String name : pods) {
            if (owner.get(name) instanceof ObjectNode pod && !pod.hasNonNull("containers")) {
                pod.putArray("containers");
            }
        }
    }
}
