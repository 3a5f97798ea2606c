// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.revision;

import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.kubernetes.cluster.Owner;
import java.util.List;
import java.util.function.BiConsumer;

/** Places the models of services that share pods. Implementations are thread-safe and do not block. */
public interface SharedModels {
    /** Sets what is called with the namespace and the name of a service whose state has changed; before the start. */
    void onChange(BiConsumer<String, String> changes);

    /**
     * Takes the workloads of a service, of which those that share pods are placed.
     *
     * @param ready the revision that was ready last, whose model is not loaded before it is needed; empty for none
     */
    void configure(Owner service, List<Workload> workloads, String ready);

    /** Forgets a service that is gone, or that has pods of its own now. */
    void forget(String namespace, String service);

    /** The state of a service's model. */
    WorkloadState state(String namespace, String service);
}
