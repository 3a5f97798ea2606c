// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The objects of one component, or the problem that prevents them.
 *
 * @param plan what the component is
 * @param bare its objects, with the templates before anything is added to the pods
 * @param whole the same objects with the templates that are applied
 * @param deployments the names of its Deployments
 * @param problem the reason why it gets no new objects; null when it gets them
 */
record PlannedComponent(
        ComponentPlan plan,
        List<ObjectNode> bare,
        List<ObjectNode> whole,
        List<String> deployments,
        @Nullable Problem problem) {
    String name() {
        return plan.name();
    }

    @Nullable ObjectNode service() {
        return bare.stream()
                .filter(one -> one.path("kind").asText().equals("Service")
                        && one.path("metadata").path("name").asText().equals(name()))
                .findFirst()
                .orElse(null);
    }
}
