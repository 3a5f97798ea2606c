// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/** The models that make_fixtures.py made, and tensors for them. */
final class Models {
    static final PytorchBackend BACKEND = new PytorchBackend();

    private Models() {}

    static Path root() {
        try {
            return Path.of(Models.class.getResource("/models").toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    static ModelLocation source(String model) {
        return source(model, root());
    }

    static ModelLocation source(String model, Path root) {
        Path directory = root.resolve(model);
        return new ModelLocation(new ServableId(model, 1), directory, directory.resolve("1"));
    }

    static BackendModel load(String model) {
        return load(model, ModelConfig.unspecified(model));
    }

    static BackendModel load(String model, ModelConfig config) {
        return load(model, config, Map.of());
    }

    static BackendModel load(String model, ModelConfig config, Map<String, String> settings) {
        return BACKEND.load(source(model), config, new BackendContext(2, root(), settings));
    }

    /** A model of one file, in the layout of a model repository. */
    static ModelLocation lay(String model, Path directory, String file, byte[] content) {
        try {
            Files.write(
                    Files.createDirectories(directory.resolve(model).resolve("1"))
                            .resolve(file),
                    content);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return source(model, directory);
    }

    /** Copies an archive whose code calls the module {@code this} instead of {@code self}. */
    static Path withAnotherModuleName(Path archive, Path directory) throws IOException {
        Path copy = Files.createDirectories(directory).resolve("model.pt");
        try (ZipFile from = new ZipFile(archive.toFile());
                ZipOutputStream to = new ZipOutputStream(Files.newOutputStream(copy))) {
            // libtorch reads entries in place
            to.setMethod(ZipOutputStream.STORED);
            for (ZipEntry entry : Collections.list(from.entries())) {
                byte[] content = from.getInputStream(entry).readAllBytes();
                if (entry.getName().endsWith(".py")) {
                    content = utf8(new String(content, StandardCharsets.UTF_8).replaceAll("\\bself\\b", "this"));
                }
                ZipEntry written = new ZipEntry(entry.getName());
                CRC32 crc = new CRC32();
                crc.update(content);
                written.setSize(content.length);
                written.setCrc(crc.getValue());
                to.putNextEntry(written);
                to.write(content);
            }
        }
        return copy;
    }

    static byte[] bytes(String resource) {
        try {
            return Files.readAllBytes(root().resolveSibling(resource));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static Tensor floats(String name, Shape shape, float... values) {
        Tensor tensor = Tensor.allocate(name, DataType.FP32, shape);
        for (int i = 0; i < values.length; i++) {
            tensor.buffer().putFloat(4 * i, values[i]);
        }
        return tensor;
    }

    static Tensor floats(String name, float... values) {
        return floats(name, Shape.of(values.length), values);
    }

    static Tensor texts(String name, byte[]... texts) {
        return texts(name, Shape.of(texts.length), texts);
    }

    static Tensor texts(String name, Shape shape, byte[]... texts) {
        int size = 0;
        for (byte[] text : texts) {
            size += 4 + text.length;
        }
        ByteBuffer bytes = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] text : texts) {
            bytes.putInt(text.length).put(text);
        }
        return Tensor.over(name, DataType.BYTES, shape, MemoryRegion.copyOf(bytes.array(), 0, size), 0, size);
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static List<byte[]> texts(Tensor tensor) {
        List<byte[]> texts = new ArrayList<>();
        ByteBuffer bytes = tensor.buffer();
        while (bytes.hasRemaining()) {
            byte[] text = new byte[bytes.getInt()];
            bytes.get(text);
            texts.add(text);
        }
        return texts;
    }

    static float[] floats(Tensor tensor) {
        assertThat(tensor.dataType()).isEqualTo(DataType.FP32);
        float[] values = new float[tensor.byteLength() / 4];
        tensor.buffer().asFloatBuffer().get(values);
        return values;
    }

    /** Copies of the results of one run. */
    record Answer(Shape shape, float[] values) {}

    static Answer ask(ModelInstance invocation, String output, Tensor... inputs) {
        List<Tensor> results;
        try {
            results = invocation.run(List.of(inputs), List.of(output));
        } finally {
            Tensor.closeAll(List.of(inputs));
        }
        Answer answer = new Answer(results.get(0).shape(), floats(results.get(0)));
        Tensor.closeAll(results);
        return answer;
    }
}
