// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

class CatboostContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return References.BACKEND;
    }

    @Override
    protected ModelLocation model(Path directory) {
        return References.laidOut(directory, "whole", "model.cbm", References.file("three.cbm"));
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        byte[] bytes = References.file("three.cbm");
        return References.laidOut(directory, "broken", "model.cbm", Arrays.copyOf(bytes, bytes.length / 2));
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        Random random = new Random(seed);
        Tensor rows = Tensor.allocate("input-0", DataType.FP32, Shape.of(3, 4));
        ByteBuffer to = rows.buffer();
        for (int i = 0; i < 12; i++) {
            to.putFloat((float) random.nextGaussian());
        }
        return List.of(rows);
    }
}
