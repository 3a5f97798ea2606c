// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

class MlflowContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return Models.BACKEND;
    }

    @Override
    protected ModelLocation model(Path directory) {
        Path copy = directory.resolve("xgboost-classifier");
        return Models.source(Files.exists(copy) ? copy : Models.copy("xgboost-classifier", directory));
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        Path copy = Models.copy("sklearn-cloudpickle", directory);
        Models.write(copy.resolve("MLmodel"), "flavors:\n  python_function: [");
        return Models.source(copy);
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        List<Tensor> tensors = new ArrayList<>();
        for (String name : List.of("sepal length", "sepal width", "petal length", "petal width")) {
            tensors.add(Models.tensor(
                    name,
                    io.nereid.tensor.DataType.FP64,
                    Shape.of(3),
                    List.of(seed % 7, (seed + 3) % 5, (seed + tensors.size()) % 3)));
        }
        return tensors;
    }
}
