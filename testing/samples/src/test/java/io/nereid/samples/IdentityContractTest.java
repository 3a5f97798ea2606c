// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.util.List;

/** The backend contract with a model that executes requests. */
class IdentityContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return new IdentityBackend();
    }

    @Override
    protected ModelLocation model(Path directory) {
        return new ModelLocation(new ServableId("echo", 1), directory, directory);
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        return new ModelLocation(new ServableId("broken", 1), directory, directory);
    }

    @Override
    protected ModelConfig config(String name) {
        List<TensorSpec> two = List.of(
                new TensorSpec("INPUT0", DataType.INT32, Shape.of(2)),
                new TensorSpec("INPUT1", DataType.INT32, Shape.of(1)));
        ModelConfig.Builder config = ModelConfig.builder(name).inputs(two);
        return name.equals("broken") ? config.outputs(two.subList(0, 1)).build() : config.build();
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        Tensor a = Tensor.allocate("INPUT0", DataType.INT32, Shape.of(2));
        a.buffer().putInt(seed).putInt(-seed);
        Tensor b = Tensor.allocate("INPUT1", DataType.INT32, Shape.of(1));
        b.buffer().putInt(seed + 1);
        return List.of(a, b);
    }
}
