// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelTraits;

/**
 * A model that accepts its only input under any name and in any numeric type, as KServe's PaddlePaddle server does.
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
