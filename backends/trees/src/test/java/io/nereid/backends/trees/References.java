// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;

/** Trained models, with the predictions of the Python packages. Stateless. */
public final class References {
    public static final Path MODELS = Path.of("src", "test", "resources", "models");
    static final Backend XGBOOST = new XgboostBackend();
    static final Backend LIGHTGBM = new LightgbmBackend();

    private References() {}

    /** The predictions of a package for some rows. */
    public record Expected(int rows, int features, double[] x, double[][] answers, double[][] margins) {}

    public static List<Path> models(String kind) {
        try (Stream<Path> files = Files.list(MODELS.resolve(kind))) {
            return files.filter(f ->
                            !f.toString().endsWith(".expected") && !f.toString().endsWith(".contributions"))
                    .sorted()
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static Path model(String kind, String beginning) {
        return models(kind).stream()
                .filter(f -> f.getFileName().toString().startsWith(beginning))
                .findFirst()
                .orElseThrow();
    }

    public static Expected expected(Path model) {
        String name = model.getFileName().toString();
        Path file = model.resolveSibling(name.substring(0, name.lastIndexOf('.')) + ".expected");
        ByteBuffer in;
        try {
            in = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        int rows = in.getInt();
        int features = in.getInt();
        int answers = in.getInt();
        int margins = in.getInt();
        double[] x = new double[rows * features];
        for (int i = 0; i < x.length; i++) {
            x[i] = in.getDouble();
        }
        return new Expected(rows, features, x, matrix(in, rows, answers), matrix(in, rows, margins));
    }

    private static double[][] matrix(ByteBuffer in, int rows, int columns) {
        double[][] matrix = new double[rows][columns];
        for (double[] row : matrix) {
            for (int i = 0; i < columns; i++) {
                row[i] = in.getDouble();
            }
        }
        return matrix;
    }

    public static Backend backend(Path model) {
        return model.toString().endsWith(".txt") ? LIGHTGBM : XGBOOST;
    }

    public static ModelLocation source(Path model) {
        Path directory = model.toAbsolutePath().getParent();
        return new ModelLocation(new ServableId("m", 1), directory, directory);
    }

    public static ModelConfig.Builder config(Path model) {
        return ModelConfig.builder("m").modelFile(model.getFileName().toString());
    }

    public static BackendModel load(Path model, ModelConfig config) {
        return backend(model).load(source(model), config, new BackendContext(1, Path.of("target"), Map.of()));
    }

    public static Tensor rows(String name, DataType type, double[] x, int from, int rows, int features) {
        Tensor tensor = Tensor.allocate(name, type, Shape.of(rows, features));
        ByteBuffer to = tensor.buffer();
        for (int i = from * features; i < (from + rows) * features; i++) {
            if (type == DataType.FP32) {
                to.putFloat((float) x[i]);
            } else {
                to.putDouble(x[i]);
            }
        }
        return tensor;
    }

    /** One output for some rows. */
    static double[][] run(BackendModel model, Expected e, int from, int rows, String output) {
        DataType type = model.config().inputs().get(0).dataType();
        try (ModelInstance invocation = model.newInstance();
                Tensor input = rows(model.config().inputs().get(0).name(), type, e.x(), from, rows, e.features());
                Tensor result = invocation.run(List.of(input), List.of(output)).get(0)) {
            int width = (int) (result.shape().elementCount() / rows);
            double[][] answers = new double[rows][width];
            ByteBuffer in = result.buffer();
            for (double[] row : answers) {
                for (int i = 0; i < width; i++) {
                    row[i] = result.dataType() == DataType.FP32
                            ? in.getFloat()
                            : result.dataType() == DataType.FP64 ? in.getDouble() : in.getLong();
                }
            }
            return answers;
        }
    }

    public static byte[] bytes(Path file) {
        try {
            return Files.readAllBytes(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A model of one version with one file. */
    static ModelLocation laidOut(Path root, String name, String file, byte[] bytes) {
        try {
            Path version = Files.createDirectories(root.resolve(name).resolve("1"));
            Files.write(version.resolve(file), bytes);
            return new ModelLocation(new ServableId(name, 1), root.resolve(name), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Rows of six floats, some of them missing. */
    static Tensor random(String name, int seed, int rows) {
        Random random = new Random(seed);
        double[] x = new double[rows * 6];
        for (int i = 0; i < x.length; i++) {
            x[i] = random.nextInt(8) == 0 ? Double.NaN : 2 * random.nextGaussian();
        }
        return rows(name, DataType.FP32, x, 0, rows, 6);
    }
}
