// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.linear;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.spi.config.ModelConfig;

/** A loaded linear model. Immutable: all instances share the weights. */
final class LinearModel implements BackendModel {
    private static final ModelTraits TRAITS = ModelTraits.DEFAULT;

    private final Weights weights;
    private final ModelConfig config;

    LinearModel(Weights weights, ModelConfig config) {
        this.weights = weights;
        this.config = config;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return TRAITS;
    }

    @Override
    public ModelInstance newInstance() {
        return new LinearModelInstance(weights);
    }

    /** Returns 0: the weights are on the heap. */
    @Override
    public long memoryBytes() {
        return 0;
    }

    @Override
    public void close() {}
}
