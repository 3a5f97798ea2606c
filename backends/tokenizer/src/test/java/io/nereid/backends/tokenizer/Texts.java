// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
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
import java.util.Objects;

/** Tokenizers with sixteen words in the layout of models, and texts for them. */
final class Texts {
    /** One backend for all tests, because each would load the native library again. */
    static final TokenizerBackend BACKEND = new TokenizerBackend();

    private Texts() {}

    static String json() {
        try (InputStream in = Objects.requireNonNull(Texts.class.getResourceAsStream("/tokenizer.json"))) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static ModelLocation source(Path root, String name, String json) {
        try {
            Path version = Files.createDirectories(root.resolve(name).resolve("1"));
            Files.writeString(version.resolve("tokenizer.json"), json);
            return new ModelLocation(new ServableId(name, 1), root.resolve(name), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static Tensor texts(String name, Shape shape, String... texts) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (String text : texts) {
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            bytes.writeBytes(ByteBuffer.allocate(4)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(utf8.length)
                    .array());
            bytes.writeBytes(utf8);
        }
        return Tensor.over(
                name,
                DataType.BYTES,
                shape,
                MemoryRegion.copyOf(bytes.toByteArray(), 0, bytes.size()),
                0,
                bytes.size());
    }

    /** The tensor's elements, by row. */
    static List<List<Long>> rows(Tensor tensor) {
        ByteBuffer bytes = tensor.buffer();
        int rank = tensor.shape().rank();
        int width = (int) tensor.shape().dim(rank - 1);
        List<List<Long>> rows = new ArrayList<>();
        while (bytes.hasRemaining()) {
            List<Long> row = new ArrayList<>();
            for (int i = 0; i < width; i++) {
                row.add(tensor.dataType() == DataType.INT64 ? bytes.getLong() : bytes.getInt());
            }
            rows.add(row);
        }
        return rows;
    }
}
