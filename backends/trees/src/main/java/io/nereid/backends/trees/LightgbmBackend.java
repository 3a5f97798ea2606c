// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import java.util.List;

/**
 * Models of LightGBM, as its text. Inputs, outputs and parameters are those of {@link XgboostBackend}; answers have the
 * 64 bits that the library computes in. Thread-safe.
 */
public final class LightgbmBackend extends TreesBackend {
    static final String NAME = "lightgbm";

    /** The backend. */
    public LightgbmBackend() {
        super(NAME, List.of("model.txt", "model.bst"));
    }
}
