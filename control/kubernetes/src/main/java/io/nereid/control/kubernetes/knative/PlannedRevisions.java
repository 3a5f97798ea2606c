// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The Knative Service of one component, or the problem that prevents it.
 *
 * @param plan what the component is
 * @param objects the Knative Service, and what else the component has; what is there with a problem
 * @param stored the Knative Service that is there; null for none
 * @param problem the reason why it gets no new revision; null when it gets one
 */
record PlannedRevisions(
        ComponentPlan plan,
        List<ObjectNode> objects,
        @Nullable ObjectNode stored,
        @Nullable Problem problem) {
    Component component() {
        return plan.component();
    }

    String name() {
        return plan.name();
    }

    /** The name of the component's conditions, such as {@code PredictorReady}, without its end. */
    String title() {
        return switch (component()) {
            case PREDICTOR -> "Predictor";
            case TRANSFORMER -> "Transformer";
            default -> "Explainer";
        };
    }

    String ready() {
        return title() + "Ready";
    }

    String configuration() {
        return title() + "ConfigurationReady";
    }

    String route() {
        return title() + (component() == Component.EXPLAINER ? "RoutesReady" : "RouteReady");
    }
}
