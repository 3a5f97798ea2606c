// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.adopt;

import java.util.List;

/**
 * What changes for one service when the operator takes it over. Immutable.
 *
 * @param mode its deployment mode
 * @param template what becomes of the templates of its pods
 * @param changes the objects that are made, changed or removed, such as {@code Ingress iris: spec.rules}; of a changed one the
 *     first field
 * @param reason why templates do not stay, and what to do; empty when they do
 */
public record ServiceAdoption(
        String namespace, String name, String mode, Template template, List<String> changes, String reason) {
    public ServiceAdoption {
        changes = List.copyOf(changes);
    }

    /** What becomes of the templates of a service's pods. */
    public enum Template {
        /** They stay as KServe's controller has written them. */
        KEPT,
        /** They get the operator's template, service after service. */
        ROLLS,
        /** They are the operator's already. */
        OWN,
        /** The operator makes Deployments of its own, or none. */
        NONE
    }

    /** Whether the service goes on without a restart of its pods and without a step by hand. */
    public boolean isQuiet() {
        return template != Template.ROLLS && reason.isEmpty();
    }
}
