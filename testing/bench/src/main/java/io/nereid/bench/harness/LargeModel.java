// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** An ONNX model of 400 MB: one matrix, by which the input {@code x} with {@value #SIDE} columns is multiplied. Stateless. */
public final class LargeModel {
    /** Rows and columns of the matrix. */
    public static final int SIDE = 10_000;

    private LargeModel() {}

    /** Writes a version with one matrix of 400 MB in an external file: y = x W. */
    public static Path write(Path base) throws IOException {
        Path version = Files.createDirectories(base.resolve("1"));
        byte[] row = new byte[SIDE * 4];
        for (int i = 0; i < row.length; i++) {
            row[i] = (byte) (i * 31 & 0x3F);
        }
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(version.resolve("weights.bin")))) {
            for (int i = 0; i < SIDE; i++) {
                out.write(row);
            }
        }
        Proto weights = new Proto()
                .number(1, SIDE)
                .number(1, SIDE)
                .number(2, 1)
                .text(8, "W")
                .message(13, new Proto().text(1, "location").text(2, "weights.bin"))
                .number(14, 1);
        Proto graph = new Proto()
                .message(1, new Proto().text(1, "x").text(1, "W").text(2, "y").text(4, "MatMul"))
                .text(2, "large")
                .message(5, weights)
                .message(11, value("x"))
                .message(12, value("y"));
        Files.write(
                version.resolve("model.onnx"),
                new Proto()
                        .number(1, 8)
                        .message(7, graph)
                        .message(8, new Proto().number(2, 16))
                        .bytes());
        return base;
    }

    private static Proto value(String name) {
        Proto shape = new Proto().message(1, new Proto().text(2, "batch")).message(1, new Proto().number(1, SIDE));
        return new Proto()
                .text(1, name)
                .message(2, new Proto().message(1, new Proto().number(1, 1).message(2, shape)));
    }

    /** A protobuf message, field by field. Confined to one thread. */
    private static final class Proto {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();

        Proto number(int field, long value) {
            varint((long) field << 3);
            varint(value);
            return this;
        }

        Proto text(int field, String value) {
            return put(field, value.getBytes(StandardCharsets.UTF_8));
        }

        Proto message(int field, Proto value) {
            return put(field, value.bytes());
        }

        private Proto put(int field, byte[] value) {
            varint((long) field << 3 | 2);
            varint(value.length);
            try {
                out.write(value);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return this;
        }

        private void varint(long value) {
            long v = value;
            while ((v & ~0x7FL) != 0) {
                out.write((int) (v | 0x80));
                v >>>= 7;
            }
            out.write((int) v);
        }

        byte[] bytes() {
            return out.toByteArray();
        }
    }
}
