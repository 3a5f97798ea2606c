// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.component.PlanningContext;
import java.util.Set;

/** Warns about fields of pods that have no effect on one machine. Stateless. */
final class UnsupportedPodFields {
    private static final Set<String> KNOWN = Set.of(
            "minReplicas",
            "maxReplicas",
            "scaleTarget",
            "scaleMetric",
            "scaleMetricType",
            "autoScaling",
            "containerConcurrency",
            "timeout",
            "canaryTrafficPercent",
            "logger",
            "batcher",
            "labels",
            "annotations",
            "deploymentStrategy",
            "name",
            "model",
            "containers",
            "art",
            "nereid",
            "storageUris",
            "storageContainerName",
            "workerSpec",
            "serviceAccountName",
            "serviceAccount",
            "automountServiceAccountToken");

    private UnsupportedPodFields() {}

    static void advise(PlanningContext context, ObjectNode pod, String where) {
        ModelAdvice.token(context, pod, where);
        pod.properties().forEach(entry -> {
            String field = entry.getKey();
            if (!KNOWN.contains(field) && !ProcessForms.isEmpty(entry.getValue())) {
                context.advice.add(where + "." + field + " has no effect on one machine: there are no pods");
            }
        });
    }
}
