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
    private final ModelTraits traits;

    SingleInputModel(BackendModel model) {
        super(model);
        this.traits = model.traits().toBuilder().takesTables(true).build();
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }
}
