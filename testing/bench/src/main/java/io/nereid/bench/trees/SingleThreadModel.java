// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.trees;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.function.DoubleSupplier;

/** A tabular model in its backend, without the engine, on the calling thread. Confined to one thread. */
final class SingleThreadModel implements AutoCloseable {
    private static final double LEAST_SECONDS = 0.3;

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final BackendModel model;
    private final ModelInstance instance;

    private SingleThreadModel(BackendModel model) {
        this.model = model;
        this.instance = model.newInstance();
    }

    /** Loads a model from its file. */
    static SingleThreadModel load(String backendName, Path file, BenchmarkSettings setting) throws IOException {
        Backend backend = ServiceLoader.load(Backend.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(b -> b.name().equals(backendName))
                .findFirst()
                .orElseThrow(() -> new IOException("there is no backend " + backendName));
        Path directory = Objects.requireNonNull(file.toAbsolutePath().getParent());
        ModelConfig config = ModelConfig.builder("m")
                .modelFile(String.valueOf(file.getFileName()))
                .build();
        return new SingleThreadModel(backend.load(
                new ModelLocation(new ServableId("m", 1), directory, directory),
                config,
                new BackendContext(1, setting.scratch(), Map.of())));
    }

    /** Returns rows of the model's first input, of the given width; the caller closes it. */
    Tensor input(int rows, int features, DoubleSupplier values) {
        TensorSpec spec = model.config().inputs().get(0);
        Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), Shape.of(rows, features));
        ByteBuffer to = tensor.buffer();
        for (int i = 0; i < rows * features; i++) {
            if (spec.dataType() == DataType.FP32) {
                to.putFloat((float) values.getAsDouble());
            } else {
                to.putDouble(values.getAsDouble());
            }
        }
        return tensor;
    }

    /** Returns the predictions for all rows. */
    double[] predict(Tensor in, int rows) {
        try (Tensor out = instance.run(List.of(in), List.of("predict")).get(0)) {
            ByteBuffer from = out.buffer();
            double[] predictions = new double[rows];
            for (int row = 0; row < rows; row++) {
                predictions[row] = out.dataType() == DataType.FP32 ? from.getFloat() : from.getDouble();
            }
            return predictions;
        }
    }

    /** Returns the CPU time of the calling thread for each row in microseconds, output tensors included. */
    double micros(Tensor in, int rows) {
        List<Tensor> inputs = List.of(in);
        List<String> outputs = List.of("predict");
        return micros(() -> Tensor.closeAll(instance.run(inputs, outputs)), rows);
    }

    /** Returns the CPU time of the calling thread for each row in microseconds. */
    static double micros(Runnable run, int rows) {
        long begun = THREADS.getCurrentThreadCpuTime();
        long took = 0;
        long rowsRun = 0;
        int turns = Math.max(1, 1000 / rows);
        while (took < LEAST_SECONDS * 1e9) {
            for (int i = 0; i < turns; i++) {
                run.run();
            }
            rowsRun += (long) turns * rows;
            took = THREADS.getCurrentThreadCpuTime() - begun;
        }
        return took / 1e3 / rowsRun;
    }

    @Override
    public void close() {
        instance.close();
        model.close();
    }
}
