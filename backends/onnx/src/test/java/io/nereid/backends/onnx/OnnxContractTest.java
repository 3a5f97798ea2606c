// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class OnnxContractTest extends BackendContract {
    @Override
    protected Backend backend() {
        return Fixtures.BACKEND;
    }

    @Override
    protected ModelLocation model(Path root) {
        return new Fixtures(root).source("add_sub_fp32");
    }

    @Override
    protected ModelLocation invalidModel(Path root) {
        return new Fixtures(root).source("truncated");
    }

    @Override
    protected Map<String, byte[]> rejectedContents() {
        return Map.of(
                "of a future operator set", Fixtures.bytes("future_opset"),
                "with an unknown operator", Fixtures.bytes("custom_domain"),
                "with a tensor that nothing makes", Fixtures.bytes("dangling"),
                "with weights in a file that is not there", Fixtures.bytes("external_data_missing"),
                "with weights outside its directory", Fixtures.bytes("external_data_escape"));
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        float[] a = new float[16];
        float[] b = new float[16];
        for (int i = 0; i < 16; i++) {
            a[i] = seed * 16 + i;
            b[i] = seed;
        }
        return List.of(Fixtures.floats("INPUT0", Shape.of(1, 16), a), Fixtures.floats("INPUT1", Shape.of(1, 16), b));
    }
}
