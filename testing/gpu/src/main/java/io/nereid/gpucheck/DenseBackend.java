// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Devices;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The backend {@code dense}: dense layers on a GPU by cuBLAS and a kernel of NVRTC, or on a processor. The file
 * {@code model.dense} of a version has the numbers of layers, inputs and matrices. Thread-safe: has no state.
 */
public final class DenseBackend implements Backend {
    /** For {@link java.util.ServiceLoader}. */
    public DenseBackend() {}

    @Override
    public String name() {
        return "dense";
    }

    @Override
    public List<String> defaultFiles() {
        return List.of("model.dense");
    }

    @Override
    public @Nullable String gpuUnavailableReason() {
        return Cuda.missing();
    }

    @Override
    public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
        DenseShape shape;
        try {
            shape = DenseShape.parse(
                    Files.readString(location.versionDirectory().resolve("model.dense")));
        } catch (IOException e) {
            throw ServingException.wrap(ErrorCode.NOT_FOUND, "the model's file cannot be read: " + e, e);
        }
        Devices devices = context.devices();
        ModelConfig complete = config.completed(
                "dense",
                "dense",
                Math.max(1, config.maxBatchSize()),
                List.of(new TensorSpec("IN", DataType.FP32, Shape.of(shape.width()))),
                List.of(new TensorSpec("OUT", DataType.FP32, Shape.of(shape.width()))),
                config.batching(),
                config.instances());
        return new DenseModel(shape, complete, devices);
    }
}
