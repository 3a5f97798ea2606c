// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.weights;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads the header of a safetensors file: 8 bytes with the length of the header, the header, which is a JSON object of tensors by
 * name, and the bytes of all tensors. The format is described at https://github.com/huggingface/safetensors. Stateless.
 */
final class SafetensorsHeader {
    /** The format's limit of the header, in bytes. */
    private static final long MOST_HEADER = 100_000_000;

    private static final int MOST_DEPTH = 8;
    private static final int MOST_RANK = 8;
    private static final int LENGTH_BYTES = 8;

    private SafetensorsHeader() {}

    /** @throws ServingException INVALID_ARGUMENT when the file is not a valid safetensors file */
    static Map<String, WeightTensor> read(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            long size = channel.size();
            ByteBuffer length = ByteBuffer.allocate(LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN);
            fill(channel, length, 0);
            long header = length.hasRemaining() ? -1 : length.getLong(0);
            if (header < 2 || header > size - LENGTH_BYTES) {
                throw rejected(
                        file,
                        size < LENGTH_BYTES
                                ? "it has " + size + " bytes (expected: at least 8)"
                                : "it declares a header of " + Long.toUnsignedString(header) + " bytes, and has "
                                        + (size - LENGTH_BYTES) + " after the length");
            }
            if (header > MOST_HEADER) {
                throw rejected(
                        file, "it declares a header of " + header + " bytes (expected: at most " + MOST_HEADER + ")");
            }
            ByteBuffer text = ByteBuffer.allocate((int) header + JsonReader.SLACK);
            text.limit((int) header);
            fill(channel, text, LENGTH_BYTES);
            return parse(file, text.array(), (int) header, size - LENGTH_BYTES - header);
        }
    }

    private static void fill(FileChannel channel, ByteBuffer into, long from) throws IOException {
        long at = from;
        int n = 0;
        while (into.hasRemaining() && n >= 0) {
            n = channel.read(into, at);
            at += Math.max(n, 0);
        }
    }

    private static Map<String, WeightTensor> parse(Path file, byte[] text, int length, long data) {
        JsonReader reader = new JsonReader(MOST_DEPTH);
        reader.reset(text, 0, length);
        Map<String, WeightTensor> tensors = new LinkedHashMap<>();
        try {
            if (reader.peek() != JsonToken.OBJECT) {
                throw ServingException.invalidArgument("it is not an object");
            }
            reader.beginObject();
            while (reader.nextField()) {
                String name = reader.name();
                if (name.equals("__metadata__")) {
                    reader.skipValue();
                } else if (tensors.put(name, tensor(reader, file, name, LENGTH_BYTES + (long) length, data)) != null) {
                    throw ServingException.invalidArgument("it has the tensor '" + name + "' twice");
                }
            }
            reader.expectEnd();
            return tensors;
        } catch (ServingException e) {
            throw rejected(file, "its header cannot be read: " + e.getMessage());
        }
    }

    private static WeightTensor tensor(JsonReader reader, Path file, String name, long start, long data) {
        String typeName = "";
        List<Long> shape = null;
        List<Long> offsets = null;
        reader.beginObject();
        while (reader.nextField()) {
            if (reader.keyEquals("dtype")) {
                typeName = reader.readString();
            } else if (reader.keyEquals("shape")) {
                shape = longs(reader, MOST_RANK, name);
            } else if (reader.keyEquals("data_offsets")) {
                offsets = longs(reader, 2, name);
            } else {
                reader.skipValue();
            }
        }
        WeightType type = WeightType.of(typeName);
        if (type == null) {
            throw ServingException.invalidArgument("tensor '" + name + "' is of the unknown type '" + typeName + "'");
        }
        if (shape == null || offsets == null || offsets.size() != 2) {
            throw ServingException.invalidArgument(
                    "tensor '" + name + "' lacks its shape or data_offsets (expected: both, with two offsets)");
        }
        long bytes = type.bytes();
        try {
            for (long d : shape) {
                bytes = Math.multiplyExact(bytes, d);
            }
        } catch (ArithmeticException e) {
            throw ServingException.invalidArgument("tensor '" + name + "' has the impossible shape " + shape);
        }
        long begin = offsets.get(0);
        long end = offsets.get(1);
        if (begin > end || end > data) {
            throw ServingException.invalidArgument("tensor '" + name + "' has the offsets " + offsets
                    + ", and the file has " + data + " bytes of tensors");
        }
        if (end - begin != bytes) {
            throw ServingException.invalidArgument("tensor '" + name + "' has " + (end - begin) + " bytes, and " + type
                    + " of shape " + shape + " takes " + bytes);
        }
        return new WeightTensor(name, file, type, shape, start + begin, bytes);
    }

    private static List<Long> longs(JsonReader reader, int most, String name) {
        List<Long> values = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) {
            long value = reader.readLong();
            if (value < 0 || values.size() == most) {
                throw ServingException.invalidArgument(
                        value < 0
                                ? "tensor '" + name + "' has the negative number " + value
                                : "tensor '" + name + "' has a list of more than " + most + " numbers");
            }
            values.add(value);
        }
        return values;
    }

    static ServingException rejected(Path file, String why) {
        return ServingException.invalidArgument(
                "model file '" + file + "' cannot be loaded: " + why,
                "copy the file again, and compare its size with that of the original");
    }
}
