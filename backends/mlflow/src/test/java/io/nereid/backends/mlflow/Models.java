// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.OnnxBackend;
import io.nereid.backends.sklearn.SklearnBackend;
import io.nereid.backends.trees.LightgbmBackend;
import io.nereid.backends.trees.XgboostBackend;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;

/** The models that the mlflow package saved, and tensors for them. */
final class Models {
    static final Path ROOT = Path.of("src/test/resources/mlflow").toAbsolutePath();
    static final List<Backend> OTHERS =
            List.of(new OnnxBackend(), new SklearnBackend(), new XgboostBackend(), new LightgbmBackend());
    static final Backend BACKEND = new MlflowBackend(OTHERS);

    private Models() {}

    static List<String> names() {
        try (Stream<Path> all = Files.list(ROOT)) {
            return all.filter(p -> Files.exists(p.resolve("expected.json")))
                    .map(p -> p.getFileName().toString())
                    .sorted()
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Requests with their expected responses. */
    @SuppressWarnings("unchecked")
    static List<Map<String, Object>> cases(String name) {
        try {
            String json = Files.readString(ROOT.resolve(name).resolve("expected.json"));
            return (List<Map<String, Object>>) new Load(LoadSettings.builder().build()).loadFromString(json);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static ModelLocation source(Path directory) {
        return new ModelLocation(new ServableId("m", 1), directory, directory);
    }

    static BackendModel load(String name, ModelConfig config) {
        return load(ROOT.resolve(name), config);
    }

    static BackendModel load(Path directory, ModelConfig config) {
        return BACKEND.load(source(directory), config, new BackendContext(1, Path.of("target"), Map.of()));
    }

    /** A copy that may be changed. */
    static Path copy(String name, Path root) {
        Path target = root.resolve(name);
        try (Stream<Path> all = Files.walk(ROOT.resolve(name))) {
            for (Path from : (Iterable<Path>) all::iterator) {
                Path to = target.resolve(ROOT.resolve(name).relativize(from).toString());
                if (Files.isDirectory(from)) {
                    Files.createDirectories(to);
                } else {
                    Files.copy(from, to);
                }
            }
            return target;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void write(Path file, String text) {
        try {
            Files.createDirectories(file.getParent());
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Converts a request to MLflow's scoring server to inputs, in the model's order. */
    static List<Tensor> inputs(ModelConfig config, Object request) {
        List<Tensor> tensors = new ArrayList<>();
        Map<?, ?> form = (Map<?, ?>) request;
        if (form.get("dataframe_split") instanceof Map<?, ?> split) {
            List<?> columns = (List<?>) split.get("columns");
            List<?> rows = (List<?>) split.get("data");
            for (TensorSpec spec : config.inputs()) {
                List<Object> values = new ArrayList<>();
                for (Object row : rows) {
                    values.add(((List<?>) row).get(columns.indexOf(spec.name())));
                }
                tensors.add(tensor(spec.name(), spec.dataType(), Shape.of(rows.size()), values));
            }
            return tensors;
        }
        List<?> rows = (List<?>) form.get("inputs");
        List<Object> values = new ArrayList<>();
        rows.forEach(r -> values.addAll((List<?>) r));
        TensorSpec spec = config.inputs().get(0);
        return List.of(
                tensor(spec.name(), spec.dataType(), Shape.of(rows.size(), values.size() / rows.size()), values));
    }

    static Tensor tensor(String name, DataType type, Shape shape, List<?> values) {
        if (type == DataType.BYTES) {
            ByteBuffer b = ByteBuffer.allocate(1 << 16).order(java.nio.ByteOrder.LITTLE_ENDIAN);
            for (Object value : values) {
                byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
                b.putInt(text.length).put(text);
            }
            return Tensor.over(name, type, shape, MemoryRegion.copyOf(b.array(), 0, b.position()), 0, b.position());
        }
        Tensor tensor = Tensor.allocate(name, type, shape);
        ByteBuffer to = tensor.buffer();
        for (Object value : values) {
            Number n = value instanceof Boolean v ? (v ? 1 : 0) : (Number) value;
            switch (type) {
                case FP64 -> to.putDouble(n.doubleValue());
                case FP32 -> to.putFloat(n.floatValue());
                case INT64 -> to.putLong(n.longValue());
                case INT32 -> to.putInt(n.intValue());
                default -> to.put(n.byteValue());
            }
        }
        return tensor;
    }

    /** The elements: Double, Long or String. */
    static List<Object> values(Tensor tensor) {
        List<Object> values = new ArrayList<>();
        ByteBuffer b = tensor.buffer();
        for (long i = 0; i < tensor.shape().elementCount(); i++) {
            switch (tensor.dataType()) {
                case FP64 -> values.add(b.getDouble());
                case FP32 -> values.add((double) b.getFloat());
                case INT64 -> values.add(b.getLong());
                case INT32 -> values.add((long) b.getInt());
                case BYTES -> {
                    byte[] text = new byte[b.getInt()];
                    b.get(text);
                    values.add(new String(text, StandardCharsets.UTF_8));
                }
                default -> throw new AssertionError(tensor);
            }
        }
        return values;
    }
}
