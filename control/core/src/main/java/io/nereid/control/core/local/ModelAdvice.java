// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.Container;
import io.nereid.control.api.Container.EnvVar;
import io.nereid.control.core.component.PlanningContext;
import java.util.List;
import java.util.Set;

/** Names what of a service has no effect on one machine and is not a field of a pod or container. Stateless. */
final class ModelAdvice {
    /** The variables that count for a model in the engine; those with a file or a protocol belong to containers. */
    private static final Set<String> VARIABLES = Set.of(
            "MLSERVER_MODEL_NAME",
            "MLSERVER_MODEL_URI",
            "MLSERVER_MODEL_IMPLEMENTATION",
            "PREDICT_PROBA",
            "PROTOCOL",
            "STORAGE_URI");

    private static final String PREFIX = "serving.kserve.io/";

    /** Annotations of KServe about metrics, nodes and pods. */
    private static final List<String> ANNOTATIONS = List.of(
            PREFIX + "metrics",
            PREFIX + "targetUtilizationPercentage",
            PREFIX + "gpu-resource-types",
            PREFIX + "enable-metric-aggregation",
            PREFIX + "enable-prometheus-scraping",
            PREFIX + "gke-accelerator",
            PREFIX + "storage-initializer-uid",
            PREFIX + "nodegroup",
            PREFIX + "disable-localmodel",
            PREFIX + "logger-secret-name",
            PREFIX + "logger-secret-path",
            PREFIX + "logger-secret-file",
            "prometheus.kserve.io/port",
            "prometheus.kserve.io/path",
            "storage.kserve.io/readonly");

    private ModelAdvice() {}

    /** Names the annotations of the service without an effect. */
    static void annotations(PlanningContext context) {
        for (String annotation : ANNOTATIONS) {
            if (context.service.metadata().annotations().containsKey(annotation)) {
                String remedy = annotation.equals(PREFIX + "metrics")
                                || annotation.equals(PREFIX + "targetUtilizationPercentage")
                        ? "; write scaleMetric and scaleTarget"
                        : ": there are no pods and no nodes";
                context.advice.add("the annotation " + annotation + " has no effect on one machine" + remedy);
            }
        }
    }

    /** Names the token of a service account, which only pods have; what the settings filled in is not named. */
    static void token(PlanningContext context, JsonNode component, String where) {
        JsonNode written = component.path("automountServiceAccountToken");
        if (written.isBoolean() && (written.booleanValue() || context.config.autoMountServiceAccountToken())) {
            context.advice.add(
                    where + ".automountServiceAccountToken has no effect on one machine: there are no tokens");
        }
    }

    /**
     * Names the variables of a service's own container that count for nothing when the engine runs the model.
     *
     * @param own the container as the service has it, without the runtime's variables
     */
    static void variables(PlanningContext context, Container own, String where) {
        for (EnvVar variable : own.env()) {
            if (variable.from() == null
                    && !VARIABLES.contains(variable.name())
                    && !HubModel.counts(variable.name(), own.args())) {
                context.advice.add(where + ".env: " + variable.name()
                        + " has no effect on one machine: the engine runs the model; it reads MLSERVER_MODEL_NAME,"
                        + " MLSERVER_MODEL_URI, MLSERVER_MODEL_IMPLEMENTATION and PREDICT_PROBA");
            }
        }
    }
}
