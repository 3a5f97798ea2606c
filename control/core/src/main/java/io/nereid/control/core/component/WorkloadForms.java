// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import io.nereid.control.api.InferenceService.PredictorSpec;
import org.jspecify.annotations.Nullable;

/**
 * The second stage of planning: the workloads of a service's components in the form of the site where they run. Confined
 * to one call of the planner. Problems are part of the plans and not thrown.
 */
public interface WorkloadForms {
    /** Where the workloads run. */
    enum Site {
        /** The processes and the engine of this server. */
        ONE_MACHINE("OneMachine", "on one machine"),
        /** Pods of a cluster, a Deployment for each revision. */
        CLUSTER("KnativeMode", "in the Knative mode");

        private final String reason;
        private final String place;

        Site(String reason, String place) {
            this.reason = reason;
            this.place = place;
        }

        /** The reason of the condition about fields without an effect there. */
        public String reason() {
            return reason;
        }

        /** The place in a sentence: {@code on one machine}. */
        String place() {
            return place;
        }
    }

    /** Makes the forms for one call of the planner. */
    @FunctionalInterface
    interface Factory {
        WorkloadForms of(PlanningContext context);
    }

    /** Where the workloads run. */
    Site site();

    /**
     * The form of a predictor.
     *
     * @param plan what it is
     * @param spec the specification that it was made of
     */
    WorkloadPlan predictor(ComponentPlan plan, PredictorSpec spec);

    /**
     * The form of the transformer; null for none.
     *
     * @param plan what the transformer is; null for none
     * @param host what the predictor is
     * @param predictor the form of the predictor
     */
    @Nullable WorkloadPlan transformer(@Nullable ComponentPlan plan, ComponentPlan host, WorkloadPlan predictor);

    /** The form of the explainer; null for none. */
    @Nullable WorkloadPlan explainer(@Nullable ComponentPlan plan);
}
