// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import java.util.List;

/**
 * The configuration and the other resources that a resource is validated against. Implementations are thread-safe.
 */
public interface AdmissionContext {
    /** The default configuration and no other resources. */
    AdmissionContext NONE = new AdmissionContext() {};

    /** The configuration for a namespace. */
    default InferenceServiceConfig config(String namespace) {
        return InferenceServiceConfig.defaults();
    }

    /** The existing storage containers. */
    default List<ClusterStorageContainer> storageContainers() {
        return List.of();
    }

    /**
     * The runtimes of a scope.
     *
     * @param namespace empty for the ClusterServingRuntimes
     */
    default List<ServingRuntime> runtimes(String namespace) {
        return List.of();
    }

    /**
     * Checks the syntax of the condition of a graph's step.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when the condition cannot be parsed
     */
    default void condition(String condition) {}
}
