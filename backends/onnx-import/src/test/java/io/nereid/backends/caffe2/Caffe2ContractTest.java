// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.caffe2;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.OnnxBackend;
import io.nereid.backends.onnximport.caffe2.Caffe2Backend;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

class Caffe2ContractTest extends BackendContract {
    private static final Backend BACKEND = new Caffe2Backend(List.of(new OnnxBackend()));

    @Override
    protected Backend backend() {
        return BACKEND;
    }

    @Override
    protected ModelLocation model(Path root) {
        return NetCase.of("mlp").layOut(root);
    }

    @Override
    protected ModelLocation invalidModel(Path root) {
        ModelLocation source = NetCase.of("mlp").layOut(root.resolve("broken"));
        Path weights = source.versionDirectory().resolve("init_model.netdef");
        try {
            byte[] whole = Files.readAllBytes(weights);
            Files.write(weights, Arrays.copyOf(whole, whole.length / 2));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return source;
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        double[] values = new double[16];
        for (int i = 0; i < values.length; i++) {
            values[i] = seed + i / 16.0;
        }
        return List.of(new NetCase.Known("data", DataType.FP32, Shape.of(2, 8), values).tensor());
    }
}
