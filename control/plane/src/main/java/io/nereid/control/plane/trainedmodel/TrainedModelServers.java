// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.trainedmodel;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.State;
import java.util.List;
import java.util.function.BiConsumer;

/** The servers of services with many models. Implementations are thread-safe. */
public interface TrainedModelServers {
    /**
     * Gives the servers of a service their models: loads those that are new, and unloads those that are not among them.
     * May block for requests to the API server.
     *
     * @param service the stored InferenceService
     * @param models all models that it shall have
     * @return false when the servers cannot take them yet; the caller tries again
     * @throws io.nereid.base.ServingException for what may pass by itself
     */
    boolean place(ObjectNode service, List<TrainedModel> models);

    /** Whether the models of a service share servers with those of others, which have memory for them by turns. */
    default boolean isPooled(ObjectNode service) {
        return false;
    }

    /** Takes all models from the servers of a service that is gone or has a model of its own; does nothing for others. */
    default void forget(String namespace, String service) {}

    /** The state of a model that was placed; {@link State#UNKNOWN} where servers do not report it. */
    State state(String namespace, String service, String model);

    /** Sets the listener for changes of states, which gets namespace and name of the service. */
    void onChange(BiConsumer<String, String> listener);
}
