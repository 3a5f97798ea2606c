// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.Container;
import java.util.List;
import java.util.Set;

/** The fields of a pod among those of a component or a runtime, which has the pod's fields inline. Stateless. */
final class PodTree {
    /** The fields of {@code core/v1 PodSpec}. */
    private static final Set<String> FIELDS = Set.of(
            "activeDeadlineSeconds",
            "affinity",
            "automountServiceAccountToken",
            "containers",
            "dnsConfig",
            "dnsPolicy",
            "enableServiceLinks",
            "ephemeralContainers",
            "hostAliases",
            "hostIPC",
            "hostNetwork",
            "hostPID",
            "hostUsers",
            "hostname",
            "hostnameOverride",
            "imagePullSecrets",
            "initContainers",
            "nodeName",
            "nodeSelector",
            "os",
            "overhead",
            "preemptionPolicy",
            "priority",
            "priorityClassName",
            "readinessGates",
            "resourceClaims",
            "resources",
            "restartPolicy",
            "runtimeClassName",
            "schedulerName",
            "schedulingGates",
            "securityContext",
            "serviceAccount",
            "serviceAccountName",
            "setHostnameAsFQDN",
            "shareProcessNamespace",
            "subdomain",
            "terminationGracePeriodSeconds",
            "tolerations",
            "topologySpreadConstraints",
            "volumes");

    /** The fields of a runtime that its pods get: the ones that a ServingRuntime has. */
    private static final List<String> OF_RUNTIMES = List.of(
            "nodeSelector",
            "affinity",
            "tolerations",
            "volumes",
            "imagePullSecrets",
            "resourceClaims",
            "hostIPC",
            "schedulerName");

    private PodTree() {}

    /** A new tree with the pod's fields of a component. */
    static ObjectNode of(ObjectNode component) {
        ObjectNode pod = component.objectNode();
        component.properties().forEach(entry -> {
            if (FIELDS.contains(entry.getKey()) && !entry.getValue().isNull()) {
                pod.set(entry.getKey(), entry.getValue().deepCopy());
            }
        });
        return pod;
    }

    /** A new tree with the pod's fields of a runtime, overridden by those of a component; without containers. */
    static ObjectNode merged(ObjectNode runtime, ObjectNode component) {
        ObjectNode under = runtime.objectNode();
        for (String field : OF_RUNTIMES) {
            JsonNode value = runtime.get(field);
            // The API server stores no flag that is false.
            if (value != null && !value.isNull() && !(value.isBoolean() && !value.asBoolean())) {
                under.set(field, value.deepCopy());
            }
        }
        ObjectNode over = of(component);
        over.remove("containers");
        return StrategicMerge.patch(under, over);
    }

    static void setContainers(ObjectNode pod, List<Container> containers) {
        ArrayNode all = pod.putArray("containers");
        containers.forEach(one -> all.add(one.tree().deepCopy()));
    }
}
