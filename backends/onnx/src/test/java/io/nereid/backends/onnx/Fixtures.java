// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Models of the test resources in the layout of a model repository, and input tensors. Confined to one test. */
final class Fixtures {
    static final OnnxBackend BACKEND = new OnnxBackend();

    private final Path root;

    Fixtures(Path root) {
        this.root = root;
    }

    /** A version directory with the fixture as its model file. */
    ModelLocation source(String fixture) {
        return source(fixture, bytes(fixture));
    }

    static byte[] bytes(String fixture) {
        try (InputStream in = Fixtures.class.getResourceAsStream("/models/" + fixture + ".onnx")) {
            if (in == null) {
                throw new IllegalArgumentException("no fixture " + fixture);
            }
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    ModelLocation source(String name, byte[] model) {
        try {
            Path version = Files.createDirectories(root.resolve(name).resolve("1"));
            Files.write(version.resolve("model.onnx"), model);
            return new ModelLocation(new ServableId(name, 1), root.resolve(name), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    BackendContext context(Map<String, String> settings) {
        return new BackendContext(2, root, settings);
    }

    BackendModel load(String fixture) {
        return load(fixture, ModelConfig.unspecified(fixture));
    }

    BackendModel load(String fixture, ModelConfig config) {
        return BACKEND.load(source(fixture), config, context(Map.of()));
    }

    static ModelConfig config(
            String name, int maxBatchSize, List<TensorSpec> in, List<TensorSpec> out, Map<String, String> parameters) {
        ModelConfig none = ModelConfig.unspecified(name);
        return none.toBuilder()
                .maxBatchSize(maxBatchSize)
                .inputs(in)
                .outputs(out)
                .parameters(parameters)
                .build();
    }

    static Tensor raw(String name, DataType type, Shape shape, byte[] bytes) {
        Tensor tensor = Tensor.over(
                name, type, shape, io.nereid.tensor.MemoryRegion.copyOf(bytes, 0, bytes.length), 0, bytes.length);
        return tensor;
    }

    static Tensor floats(String name, Shape shape, float... values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * 4).order(ByteOrder.LITTLE_ENDIAN);
        for (float v : values) {
            bytes.putFloat(v);
        }
        return raw(name, DataType.FP32, shape, bytes.array());
    }

    static Tensor longs(String name, Shape shape, long... values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * 8).order(ByteOrder.LITTLE_ENDIAN);
        for (long v : values) {
            bytes.putLong(v);
        }
        return raw(name, DataType.INT64, shape, bytes.array());
    }

    static Tensor strings(String name, Shape shape, byte[]... values) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (byte[] v : values) {
            bytes.writeBytes(ByteBuffer.allocate(4)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(v.length)
                    .array());
            bytes.writeBytes(v);
        }
        return raw(name, DataType.BYTES, shape, bytes.toByteArray());
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Runs the model once, closes the inputs, and returns copies of the outputs. */
    static List<Answer> run(BackendModel model, List<Tensor> inputs) {
        List<String> outputs =
                model.config().outputs().stream().map(TensorSpec::name).toList();
        try (ModelInstance invocation = model.newInstance()) {
            return run(invocation, inputs, outputs);
        }
    }

    static List<Answer> run(ModelInstance invocation, List<Tensor> inputs, List<String> outputs) {
        try {
            List<Answer> answers = new ArrayList<>();
            for (Tensor tensor : invocation.run(inputs, outputs)) {
                byte[] bytes = new byte[tensor.byteLength()];
                tensor.buffer().get(bytes);
                answers.add(new Answer(tensor.name(), tensor.dataType(), tensor.shape(), bytes));
                tensor.close();
            }
            return answers;
        } finally {
            Tensor.closeAll(inputs);
        }
    }

    /** A copy of an output. */
    record Answer(String name, DataType dataType, Shape shape, byte[] bytes) {
        List<Float> floats() {
            ByteBuffer b = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
            List<Float> values = new ArrayList<>();
            while (b.hasRemaining()) {
                values.add(b.getFloat());
            }
            return values;
        }

        List<Long> longs() {
            ByteBuffer b = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
            List<Long> values = new ArrayList<>();
            while (b.hasRemaining()) {
                values.add(b.getLong());
            }
            return values;
        }

        List<String> strings() {
            ByteBuffer b = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
            List<String> values = new ArrayList<>();
            while (b.hasRemaining()) {
                byte[] value = new byte[b.getInt()];
                b.get(value);
                values.add(new String(value, StandardCharsets.UTF_8));
            }
            return values;
        }
    }
}
