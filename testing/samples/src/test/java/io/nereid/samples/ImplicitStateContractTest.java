// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** The backend contract with a model that has implicit states, which clients do not see. */
class ImplicitStateContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return new ImplicitStateBackend();
    }

    @Override
    protected ModelLocation model(Path directory) {
        return new ModelLocation(new ServableId("sums", 1), directory, directory);
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        return new ModelLocation(new ServableId("broken", 1), directory, directory);
    }

    @Override
    protected ModelConfig config(String name) {
        List<SequenceStateConfig> states = name.equals("broken")
                ? List.of()
                : List.of(new SequenceStateConfig("STATE", "NEXT", DataType.INT32, Shape.of(1), null, false));
        return ModelConfig.builder(name)
                .maxBatchSize(2)
                .sequence(new SequenceBatching(
                        new SequenceBatching.Direct(Duration.ZERO, 0), Duration.ofSeconds(1), List.of(), states, false))
                .build();
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        Tensor in = Tensor.allocate("INPUT", DataType.INT32, Shape.of(1, 1));
        in.buffer().putInt(seed);
        Tensor state = Tensor.allocate("STATE", DataType.INT32, Shape.of(1, 1));
        state.buffer().putInt(3 * seed);
        return List.of(in, state);
    }
}
