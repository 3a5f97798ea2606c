// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backends.trees.forest.ParsedModel;
import java.util.List;

/**
 * Serves LightGBM models in its text format. Inputs, outputs and parameters are those of {@link XgboostBackend};
 * results are 64-bit, as the library computes them. Thread-safe: has no state.
 */
public final class LightgbmBackend extends TreesBackend {
    static final String NAME = ParsedModel.LIGHTGBM;

    /** For {@link java.util.ServiceLoader}. */
    public LightgbmBackend() {
        super(NAME, List.of("model.txt", "model.bst"));
    }
}
