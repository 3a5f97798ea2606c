// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

@Engine
class TensorflowContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return Models.BACKEND;
    }

    @Override
    protected ModelLocation model(Path directory) {
        return Models.source("graph");
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        try {
            byte[] whole = Files.readAllBytes(Models.root().resolve("half_plus_two/1/saved_model.pb"));
            Path version = Files.createDirectories(directory.resolve("broken/1"));
            Files.write(version.resolve("saved_model.pb"), Arrays.copyOf(whole, whole.length / 2));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return Models.source("broken", directory);
    }

    /** TensorFlow's own errors do not name the file. */
    @Override
    protected boolean namesRejectedFiles() {
        return false;
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        return List.of(
                Models.floats("INPUT0", Shape.of(1, 4), seed, 1, 2, 3),
                Models.floats("INPUT1", Shape.of(1, 4), 4, 5, 6, -seed));
    }
}
