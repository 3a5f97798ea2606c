// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelTraits;

/**
 * A model that takes its only input under any name and in any type of numbers, as KServe's server for PaddlePaddle does.
 * Immutable.
 */
final class SingleInputModel extends ForwardingModel {
    SingleInputModel(BackendModel model) {
        super(model);
    }

    @Override
    public ModelTraits traits() {
        ModelTraits its = super.traits();
        return new ModelTraits(its.alignment(), its.cancel(), its.inline(), its.requests(), true, its.waits());
    }
}
