// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.catboost.CatboostBackend;
import io.nereid.backends.sklearn.boosting.BoosterLoader;
import io.nereid.backends.sklearn.pickle.Fixtures;
import io.nereid.backends.trees.LightgbmBackend;
import io.nereid.backends.trees.XgboostBackend;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
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

/** Model directories and tensors for tests. Stateless. */
public final class Models {
    /** The backends of the libraries whose models pickles may contain. */
    private static final List<Backend> OTHERS =
            List.of(new XgboostBackend(), new LightgbmBackend(), new CatboostBackend());

    private Models() {}

    private static BackendContext context(Path scratch) {
        return new BackendContext(1, scratch, Map.of(), true, null, null, OTHERS);
    }

    /** Loads the models of other libraries inside pickles; they are left to the garbage collector. */
    public static BoosterLoader boosters() {
        return new DelegatedBoosters(new ServableId("m", 1), context(Path.of("target", "scratch")));
    }

    /** A directory with a fixture of the newest version under one of the default file names. */
    static ModelLocation of(Path directory, String fixture) {
        return of(directory, Fixtures.NEW, fixture);
    }

    static ModelLocation of(Path directory, String version, String fixture) {
        String file = Fixtures.expected(version).get(fixture).get("file").asText();
        try {
            byte[] bytes = Files.readAllBytes(Fixtures.path(version, file));
            return write(directory, fixture, "model" + file.substring(file.lastIndexOf('.')), bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static ModelLocation ofBytes(Path directory, String name, byte[] bytes) {
        return write(directory, name, "model.pkl", bytes);
    }

    private static ModelLocation write(Path directory, String name, String file, byte[] bytes) {
        Path version = directory.resolve(name).resolve("1");
        try {
            Files.createDirectories(version);
            Files.write(version.resolve(file), bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return new ModelLocation(new ServableId(name, 1), directory.resolve(name), version);
    }

    static BackendModel load(ModelLocation source, ModelConfig config) {
        return new SklearnBackend().load(source, config, context(source.modelDirectory()));
    }

    public static BackendModel load(ModelLocation source) {
        return load(source, ModelConfig.unspecified(source.id().model()));
    }

    static ModelConfig with(String name, Map<String, String> parameters) {
        return ModelConfig.builder(name).parameters(parameters).build();
    }

    static Tensor doubles(String name, Shape shape, double... values) {
        Tensor tensor = Tensor.allocate(name, DataType.FP64, shape);
        tensor.buffer().asDoubleBuffer().put(values);
        return tensor;
    }

    static Tensor floats(String name, Shape shape, double... values) {
        Tensor tensor = Tensor.allocate(name, DataType.FP32, shape);
        ByteBuffer to = tensor.buffer();
        for (double v : values) {
            to.putFloat((float) v);
        }
        return tensor;
    }

    static Tensor texts(String name, Shape shape, String... texts) {
        ByteBuffer bytes = ByteBuffer.allocate(4096).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        for (String text : texts) {
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            bytes.putInt(utf8.length).put(utf8);
        }
        MemoryRegion region = MemoryRegion.copyOf(bytes.array(), 0, bytes.position());
        return Tensor.over(name, DataType.BYTES, shape, region, 0, region.size());
    }

    /** The values of the only output, of any type. */
    static List<Object> run(BackendModel model, String output, Tensor... inputs) {
        List<Object> values = new ArrayList<>();
        try (var invocation = model.newInstance()) {
            List<Tensor> results = invocation.run(List.of(inputs), List.of(output));
            for (Tensor result : results) {
                ByteBuffer b = result.buffer();
                for (long i = result.shape().elementCount(); i > 0; i--) {
                    values.add(value(result.dataType(), b));
                }
            }
            Tensor.closeAll(results);
        } finally {
            Tensor.closeAll(List.of(inputs));
        }
        return values;
    }

    private static Object value(DataType type, ByteBuffer b) {
        return switch (type) {
            case INT64 -> b.getLong();
            case INT32 -> b.getInt();
            case FP64 -> b.getDouble();
            case FP32 -> b.getFloat();
            case BOOL -> b.get() != 0;
            default -> {
                byte[] text = new byte[b.getInt()];
                b.get(text);
                yield new String(text, StandardCharsets.UTF_8);
            }
        };
    }
}
