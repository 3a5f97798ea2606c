// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.revision;

import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** Places the models of services that share pods, each of which has one, or TrainedModels. Implementations are thread-safe and do not block. */
public interface SharedModels {
    /** The reason of a failure that is the lack of memory. */
    String WAITS = "RuntimeUnhealthy";

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

    /** The state of a service's model, or of the pool for a service whose models are TrainedModels. */
    WorkloadState state(String namespace, String service);

    /** Sets what is called with the namespace and the name of a service when one of its TrainedModels has changed. */
    void onModelChange(BiConsumer<String, String> changes);

    /** The predictor of a service whose TrainedModels are placed; null while there is none. */
    @Nullable Workload parent(String namespace, String service);

    /**
     * Takes a TrainedModel, which is placed as the model of a service is.
     *
     * @param model the TrainedModel
     * @param service its service
     * @param shared what is loaded, in the pool of the service
     * @param proven whether it was loaded before, so that it is not loaded before it is needed
     */
    void configureModel(Owner model, String service, SharedModel shared, boolean proven);

    /** Forgets a TrainedModel that is gone, or that its service loads itself now. */
    void forgetModel(String namespace, String model);

    /** The state of a TrainedModel. */
    WorkloadState modelState(String namespace, String model);
}
