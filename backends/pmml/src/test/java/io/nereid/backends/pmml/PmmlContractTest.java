// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;

class PmmlContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return new PmmlBackend();
    }

    @Override
    protected ModelLocation model(Path directory) {
        return Documents.laidOut(directory, "mixed", Documents.text("mixed").getBytes(StandardCharsets.UTF_8));
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        String half = Documents.text("iris-tree").substring(0, 900);
        return Documents.laidOut(directory, "broken", half.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        List<String> cities = List.of("Bern", "Basel", "Chur", "");
        return List.of(
                Documents.column("age", DataType.INT64, List.of("" + (20 + seed), "" + (30 + seed % 11))),
                Documents.column("city", DataType.BYTES, List.of(cities.get(seed % 4), cities.get(seed % 3))),
                Documents.column("member", DataType.BOOL, List.of("" + (seed % 2 == 0), "true")),
                Documents.column("income", DataType.FP64, List.of("" + seed * 0.7, "")));
    }
}
