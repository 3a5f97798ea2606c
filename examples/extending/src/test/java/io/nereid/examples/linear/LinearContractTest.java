// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.linear;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;

class LinearContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return new LinearBackend();
    }

    @Override
    protected ModelLocation model(Path directory) {
        return laidOut(directory, "price", "bias 0.5\nweight 2\nweight -1\nend\n");
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        return laidOut(directory, "broken", "bias 0.5\nweight two\nend\n");
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        Random random = new Random(seed);
        Tensor x = Tensor.allocate("x", DataType.FP32, Shape.of(3, 2));
        ByteBuffer to = x.buffer();
        while (to.hasRemaining()) {
            to.putFloat((float) random.nextGaussian());
        }
        return List.of(x);
    }

    static ModelLocation laidOut(Path directory, String model, String text) {
        Path version = directory.resolve(model).resolve("1");
        try {
            Files.createDirectories(version);
            Files.writeString(version.resolve("model.linear"), text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return new ModelLocation(new ServableId(model, 1), directory.resolve(model), version);
    }
}
