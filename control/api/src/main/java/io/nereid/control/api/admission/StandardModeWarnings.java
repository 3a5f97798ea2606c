// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import java.util.ArrayList;
import java.util.List;

/**
 * The fields of a service that are for the Knative mode and have no effect in the Standard mode of a cluster, where no
 * gateway sees the requests. KServe takes them without a word. Stateless.
 */
public final class StandardModeWarnings {
    private static final String INSTEAD =
            "set the annotation " + InferenceServiceDefaulter.MODE_ANNOTATION + " to Knative";
    private static final String NO_EFFECT = " has no effect in the deployment mode Standard";

    private StandardModeWarnings() {}

    /** A sentence for each such field, with what to do. */
    public static List<String> of(InferenceService service) {
        List<String> warnings = new ArrayList<>();
        predictor("spec.predictor", service, service.predictor(), warnings);
        for (CanarySpec canary : service.canary()) {
            PredictorSpec own = canary.predictor();
            String name = own.name() == null ? "" : own.name();
            concurrency("spec.canary[" + name + "].predictor", own.extension(), warnings);
        }
        if (service.transformer() != null) {
            // Its containerConcurrency is the number of workers.
            zero("spec.transformer", service, service.transformer().extension(), warnings);
        }
        if (service.explainer() != null) {
            zero("spec.explainer", service, service.explainer().extension(), warnings);
            concurrency("spec.explainer", service.explainer().extension(), warnings);
        }
        return List.copyOf(warnings);
    }

    private static void predictor(String path, InferenceService service, PredictorSpec spec, List<String> warnings) {
        zero(path, service, spec.extension(), warnings);
        concurrency(path, spec.extension(), warnings);
        if (spec.extension().canaryTrafficPercent() != null) {
            warnings.add(path + ".canaryTrafficPercent" + NO_EFFECT + "; write spec.canary, or " + INSTEAD);
        }
    }

    /** Without another class the autoscaler is a HorizontalPodAutoscaler, which keeps one replica at least. */
    private static void zero(
            String path, InferenceService service, ComponentExtensionSpec spec, List<String> warnings) {
        String own = spec.annotations().get(ScalingValidator.CLASS_ANNOTATION);
        String autoscaler = own == null ? service.metadata().annotation(ScalingValidator.CLASS_ANNOTATION) : own;
        boolean horizontal = autoscaler == null || autoscaler.isEmpty() || autoscaler.equals("hpa");
        if (horizontal && spec.minReplicas() != null && spec.minReplicas() == 0) {
            warnings.add(
                    path + ".minReplicas: 0" + NO_EFFECT + ", which keeps one replica; to scale to zero, " + INSTEAD);
        }
    }

    private static void concurrency(String path, ComponentExtensionSpec spec, List<String> warnings) {
        if (spec.containerConcurrency() != null && spec.containerConcurrency() > 0) {
            warnings.add(path + ".containerConcurrency" + NO_EFFECT + "; " + INSTEAD);
        }
    }
}
