// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.model;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.fuzz.InputFile;
import io.nereid.fuzz.TargetRun;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Loading and running a model as the engine does, with inputs of two rows. Stateless. */
public final class ModelRuns {
    private static final long MOST_ELEMENTS = 10_000;

    private ModelRuns() {}

    /** The location of a model whose version directory is the folder of a file. */
    public static ModelLocation location(InputFile file) {
        return new ModelLocation(new ServableId("m", 1), file.folder(), file.folder());
    }

    /** The context of a backend. */
    public static BackendContext context() {
        return new BackendContext(2, Path.of(System.getProperty("java.io.tmpdir")), Map.of());
    }

    /** Runs a model once, and closes it. An error of the run says that the input does not suit the model. */
    public static void run(BackendModel model) {
        try (model;
                ModelInstance instance = model.newInstance()) {
            List<Tensor> inputs = new ArrayList<>();
            List<String> outputs = new ArrayList<>();
            model.config().outputs().forEach(o -> outputs.add(o.name()));
            try {
                for (TensorSpec spec : model.config().inputs()) {
                    Tensor input = input(spec, model.config().batched());
                    if (input == null) {
                        return;
                    }
                    inputs.add(input);
                }
                Tensor.closeAll(instance.run(inputs, outputs));
            } catch (ServingException e) {
                TargetRun.refused(e);
            } finally {
                Tensor.closeAll(inputs);
            }
        }
    }

    private static Tensor input(TensorSpec spec, boolean batched) {
        long[] dims = (batched ? spec.shape().prepend(2) : spec.shape()).dims();
        double elements = 1;
        for (int i = 0; i < dims.length; i++) {
            dims[i] = dims[i] < 0 ? 2 : dims[i];
            elements *= dims[i];
        }
        if (elements > MOST_ELEMENTS) {
            return null;
        }
        Shape shape = Shape.of(dims);
        int count = (int) elements;
        if (spec.dataType() == DataType.BYTES) {
            byte[][] texts = new byte[count][];
            for (int i = 0; i < count; i++) {
                texts[i] = new byte[] {(byte) ('a' + i % 3)};
            }
            return Tensor.ofBytes(spec.name(), shape, texts);
        }
        double[] values = new double[count];
        for (int i = 0; i < count; i++) {
            values[i] = i % 4;
        }
        return Tensor.ofDoubles(spec.name(), spec.dataType(), shape, values);
    }
}
