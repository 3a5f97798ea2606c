// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Trained models, with the predictions of the package. Stateless. */
final class References {
    static final Path MODELS = Path.of("src", "test", "resources", "models");
    static final Backend BACKEND = new CatboostBackend();

    private References() {}

    static JsonNode expected() {
        try {
            return new ObjectMapper().readTree(MODELS.resolve("expected.json").toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static JsonNode json(String model) {
        try {
            return new ObjectMapper().readTree(bytes(model));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static byte[] bytes(String model) {
        return file(model + ".json");
    }

    static byte[] file(String name) {
        try {
            return Files.readAllBytes(MODELS.resolve(name));
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

    static BackendModel load(String model, ModelConfig.Builder config) {
        return loadFile(model + ".json", config);
    }

    static BackendModel loadFile(String file, ModelConfig.Builder config) {
        Path directory = MODELS.toAbsolutePath();
        return BACKEND.load(
                new ModelLocation(new ServableId("m", 1), directory, directory),
                config.modelFile(file).build(),
                new BackendContext(1, Path.of("target"), Map.of()));
    }

    static BackendModel load(String model) {
        return load(model, ModelConfig.builder("m"));
    }

    /** Some rows of a fixture as the model's inputs. */
    static List<Tensor> inputs(BackendModel model, JsonNode rows, int from, int count) {
        List<Tensor> inputs = new ArrayList<>();
        List<TensorSpec> specs = model.config().inputs();
        for (int i = 0; i < specs.size(); i++) {
            int width = specs.size() == 1 ? rows.get(0).size() : 1;
            Shape shape = specs.size() == 1 ? Shape.of(count, width) : Shape.of(count);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            for (int r = from; r < from + count; r++) {
                for (int c = 0; c < width; c++) {
                    write(bytes, specs.get(i).dataType(), rows.get(r).get(i + c));
                }
            }
            MemoryRegion region = MemoryRegion.copyOf(bytes.toByteArray(), 0, bytes.size());
            inputs.add(Tensor.over(specs.get(i).name(), specs.get(i).dataType(), shape, region, 0, bytes.size()));
        }
        return inputs;
    }

    private static void write(ByteArrayOutputStream bytes, DataType type, JsonNode cell) {
        ByteBuffer b = ByteBuffer.allocate(256).order(ByteOrder.LITTLE_ENDIAN);
        if (type == DataType.BYTES) {
            byte[] text = cell.asText().getBytes(StandardCharsets.UTF_8);
            b.putInt(text.length).put(text);
        } else if (type == DataType.INT64) {
            b.putLong(cell.asLong());
        } else if (type == DataType.FP64) {
            b.putDouble(cell.isNull() ? Double.NaN : cell.asDouble());
        } else {
            b.putFloat(cell.isNull() ? Float.NaN : (float) cell.asDouble());
        }
        bytes.write(b.array(), 0, b.position());
    }

    /** An output's values: numbers, booleans and strings. */
    static List<Object> run(BackendModel model, List<Tensor> inputs, String output) {
        return run(model, "", inputs, output);
    }

    static List<Object> run(BackendModel model, String signature, List<Tensor> inputs, String output) {
        List<Object> values = new ArrayList<>();
        try (ModelInstance invocation = signature.isEmpty() ? model.newInstance() : model.newInstance(signature);
                Tensor t = invocation.run(inputs, List.of(output)).get(0)) {
            ByteBuffer b = t.buffer();
            for (long i = t.shape().elementCount(); i > 0; i--) {
                values.add(
                        switch (t.dataType()) {
                            case FP32 -> (double) b.getFloat();
                            case FP64 -> b.getDouble();
                            case INT64 -> (double) b.getLong();
                            case BOOL -> b.get() != 0;
                            default -> {
                                byte[] text = new byte[b.getInt()];
                                b.get(text);
                                yield new String(text, StandardCharsets.UTF_8);
                            }
                        });
            }
        } finally {
            Tensor.closeAll(inputs);
        }
        return values;
    }
}
