// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.util.List;

class XgboostContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return References.XGBOOST;
    }

    @Override
    protected ModelLocation model(Path directory) {
        return References.laidOut(
                directory,
                "whole",
                "model.json",
                References.bytes(References.model("xgboost", "binary-logistic-dart")));
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        byte[] bytes = References.bytes(References.model("xgboost", "binary-logistic-dart"));
        return References.laidOut(directory, "broken", "model.json", java.util.Arrays.copyOf(bytes, bytes.length / 2));
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        return List.of(References.random("input-0", seed, 3));
    }
}
