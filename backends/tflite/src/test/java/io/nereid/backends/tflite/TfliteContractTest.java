// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

@Engine
class TfliteContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return Models.BACKEND;
    }

    @Override
    protected ModelLocation model(Path directory) {
        return Models.source("several");
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        byte[] whole = Models.bytes("models/several/1/model.tflite");
        return Models.lay("broken", directory, "model.tflite", Arrays.copyOf(whole, whole.length / 2));
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        return List.of(Models.floats("rows", Shape.of(1, 4), seed, 1, 2, 3));
    }
}
