// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
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

/** Documents with their expected predictions, and tensors for them. */
final class Documents {
    private static final Path ROOT = Path.of("src/test/resources/pmml");

    private Documents() {}

    static String text(String name) {
        try {
            return Files.readString(ROOT.resolve(name + ".pmml"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Rows: the inputs, then the expected outputs. */
    static List<String[]> expected(String name) {
        try {
            return Files.readAllLines(ROOT.resolve(name + ".expected")).stream()
                    .map(l -> l.split(",", -1))
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static ModelLocation laidOut(Path root, String name, byte[] document) {
        try {
            Path version = Files.createDirectories(root.resolve(name).resolve("1"));
            Files.write(version.resolve("model.pmml"), document);
            return new ModelLocation(new ServableId(name, 1), root.resolve(name), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static BackendModel load(Path root, String document, ModelConfig config) {
        ModelLocation source = laidOut(root, "m", document.getBytes(StandardCharsets.UTF_8));
        return new PmmlBackend().load(source, config, new BackendContext(1, root, Map.of()));
    }

    /** A column of text, parsed as the type demands; the empty text is NaN. */
    static Tensor column(String name, DataType type, List<String> values) {
        return tensor(name, type, Shape.of(values.size()), values);
    }

    static Tensor tensor(String name, DataType type, Shape shape, List<String> values) {
        if (type == DataType.BYTES) {
            ByteBuffer b = ByteBuffer.allocate(1 << 14).order(ByteOrder.LITTLE_ENDIAN);
            for (String value : values) {
                byte[] text = value.getBytes(StandardCharsets.UTF_8);
                b.putInt(text.length).put(text);
            }
            return Tensor.over(name, type, shape, MemoryRegion.copyOf(b.array(), 0, b.position()), 0, b.position());
        }
        Tensor tensor = Tensor.allocate(name, type, shape);
        ByteBuffer to = tensor.buffer();
        for (String value : values) {
            double number = value.isEmpty()
                    ? Double.NaN
                    : value.equals("true") ? 1 : value.equals("false") ? 0 : Double.parseDouble(value);
            switch (type) {
                case FP64 -> to.putDouble(number);
                case FP32 -> to.putFloat((float) number);
                case INT64 -> to.putLong((long) number);
                default -> to.put((byte) number);
            }
        }
        return tensor;
    }

    static List<String> values(Tensor tensor) {
        List<String> values = new ArrayList<>();
        ByteBuffer b = tensor.buffer();
        for (long i = 0; i < tensor.shape().elementCount(); i++) {
            switch (tensor.dataType()) {
                case FP64 -> values.add(String.valueOf(b.getDouble()));
                case INT64 -> values.add(String.valueOf(b.getLong()));
                default -> {
                    byte[] text = new byte[b.getInt()];
                    b.get(text);
                    values.add(new String(text, StandardCharsets.UTF_8));
                }
            }
        }
        return values;
    }
}
