// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import java.util.Set;
import java.util.concurrent.CompletionStage;

/**
 * The model servers of a pool's pods. Implementations are thread-safe and do not block; what they return fails with a
 * {@code ServingException}, UNAVAILABLE for a pod that does not answer.
 */
interface PoolServers {
    /** The names of the models that are loaded. */
    CompletionStage<Set<String>> loaded(Holder pod);

    /** Loads a model from a storage URI; ends when it is available. A model that is there is only brought up to date. */
    CompletionStage<Void> load(Holder pod, String model, String uri);

    /** Unloads a model; ends when its last request has ended and its memory is free. */
    CompletionStage<Void> unload(Holder pod, String model);
}
