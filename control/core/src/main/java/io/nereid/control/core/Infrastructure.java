// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import java.util.function.BiConsumer;

/**
 * The infrastructure that carries out plans, such as this machine or a Kubernetes cluster. Implementations are
 * thread-safe, and no method blocks on the workloads.
 */
public interface Infrastructure extends WorkloadObserver, AutoCloseable {
    /**
     * Makes the plan's workloads and route the desired ones of the service. Idempotent. A workload that is not in the
     * plan stops after its last request has completed.
     */
    void apply(String namespace, String service, Plan plan);

    /**
     * Sets the listener that is called with namespace and name of each service whose observed state has changed. Must
     * be called once, before any other method.
     */
    void onChange(BiConsumer<String, String> listener);

    /**
     * Why no gateway takes the requests of services, for users; empty when one does. A service is not ready then, and keeps
     * its route. When it changes, all services count as changed.
     */
    default String gatewayProblem() {
        return "";
    }

    /**
     * Retries what failed in a namespace at once, because its secrets or service accounts have changed. Does not block.
     */
    default void retry(String namespace) {}

    @Override
    void close();
}
