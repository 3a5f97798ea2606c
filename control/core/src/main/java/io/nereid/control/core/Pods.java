// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;

/** Tells which fields of pods have no effect on one machine. Stateless. */
final class Pods {
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

    private Pods() {}

    static void advise(Scene scene, ObjectNode pod, String where) {
        pod.properties().forEach(entry -> {
            String field = entry.getKey();
            if (!KNOWN.contains(field) && !Containers.isEmpty(entry.getValue())) {
                scene.advice.add(where + "." + field + " has no effect on one machine: there are no pods");
            }
        });
    }
}
