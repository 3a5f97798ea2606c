// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

@Engine
class PytorchContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return Models.BACKEND;
    }

    @Override
    protected ModelLocation model(Path directory) {
        return Models.source("add_sub");
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        byte[] whole = Models.bytes("models/net/1/model.pt");
        return Models.lay("broken", directory, "model.pt", Arrays.copyOf(whole, whole.length / 2));
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        return List.of(
                Models.floats("INPUT0", Shape.of(1, 4), seed, 1, 2, 3),
                Models.floats("INPUT1", Shape.of(1, 4), 4, 5, 6, -seed));
    }
}
