// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.base.ServingException;

/** Loads native models of gradient boosting libraries. Confined to the thread that loads a model. */
public interface BoosterLoader {
    /**
     * Loads a model, which the loader owns: it is closed with the model of the whole file.
     *
     * @throws ServingException FAILED_PRECONDITION when the backend is missing, INVALID_ARGUMENT when it rejects the
     *     model
     */
    LoadedBooster load(BoosterFile file);
}
