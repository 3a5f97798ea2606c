// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.util.List;

class SklearnContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return new SklearnBackend();
    }

    @Override
    protected ModelLocation model(Path directory) {
        return Models.of(directory, "svc_three");
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        return Models.ofBytes(directory, "broken", new byte[] {(byte) 0x80, 4, '}', 'x'});
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        Tensor tensor = Tensor.allocate("input-0", DataType.FP64, Shape.of(2, 4));
        var to = tensor.buffer().asDoubleBuffer();
        for (int i = 0; i < 8; i++) {
            to.put((seed * 31 + i * 17) % 13 - 6);
        }
        return List.of(tensor);
    }
}
