// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Facts about an ONNX file that ONNX Runtime's Java API does not expose: the external weight files, the inputs with a
 * default value, and the class labels of ZipMap nodes. They are read from the protobuf fields directly, without
 * building a message. Bytes that are not an ONNX model give empty facts, because ONNX Runtime rejects them with the
 * better message. Immutable.
 *
 * @param externalFiles files with weights, relative to the model file
 * @param defaultedInputs graph inputs that have an initial value
 * @param classLabels for the outputs of ZipMap nodes: the keys of the maps, in their order
 */
record OnnxModelInfo(Set<String> externalFiles, Set<String> defaultedInputs, Map<String, List<String>> classLabels) {
    private static final OnnxModelInfo NONE = new OnnxModelInfo(Set.of(), Set.of(), Map.of());

    static OnnxModelInfo read(Path file, long bytes) throws IOException {
        if (bytes > Integer.MAX_VALUE) {
            return NONE;
        }
        try (FileChannel channel = FileChannel.open(file)) {
            return read(channel.map(FileChannel.MapMode.READ_ONLY, 0, bytes));
        }
    }

    static OnnxModelInfo read(ByteBuffer model) {
        Graph graph = new Graph();
        try {
            Fields fields = new Fields(model);
            while (fields.next()) {
                if (fields.number == 7 && fields.body != null) {
                    graph.read(fields.body);
                }
            }
        } catch (BufferUnderflowException | IllegalArgumentException e) {
            return NONE;
        }
        graph.inputs.retainAll(graph.initializers);
        return new OnnxModelInfo(graph.external, graph.inputs, graph.labels);
    }

    /** Collects the facts of a {@code GraphProto}; subgraphs are not visited. Confined to one read. */
    private static final class Graph {
        final Set<String> external = new LinkedHashSet<>();
        final Set<String> inputs = new LinkedHashSet<>();
        final Set<String> initializers = new LinkedHashSet<>();
        final Map<String, List<String>> labels = new LinkedHashMap<>();

        void read(ByteBuffer bytes) {
            Fields fields = new Fields(bytes);
            while (fields.next()) {
                ByteBuffer body = fields.body;
                if (body == null) {
                    continue;
                }
                if (fields.number == 1) {
                    node(body);
                } else if (fields.number == 5) {
                    initializer(body);
                } else if (fields.number == 11) {
                    inputs.add(text(body, 1));
                }
            }
        }

        /** Reads a {@code TensorProto}: name = 8, external_data = 13, data_location = 14 (1 is EXTERNAL). */
        private void initializer(ByteBuffer bytes) {
            Fields fields = new Fields(bytes);
            String location = "";
            boolean outside = false;
            while (fields.next()) {
                ByteBuffer body = fields.body;
                if (fields.number == 14) {
                    outside = fields.value == 1;
                } else if (body != null && fields.number == 8) {
                    initializers.add(Fields.utf8(body));
                } else if (body != null
                        && fields.number == 13
                        && text(body.duplicate(), 1).equals("location")) {
                    location = text(body, 2);
                }
            }
            if (outside && !location.isEmpty()) {
                external.add(location);
            }
        }

        /** Reads a {@code NodeProto}: output = 2, op_type = 4, attribute = 5. */
        private void node(ByteBuffer bytes) {
            if (!text(bytes.duplicate(), 4).equals("ZipMap")) {
                return;
            }
            List<String> keys = new ArrayList<>();
            Fields fields = new Fields(bytes.duplicate());
            while (fields.next()) {
                if (fields.number == 5 && fields.body != null) {
                    attribute(fields.body, keys);
                }
            }
            labels.put(text(bytes, 2), List.copyOf(keys));
        }

        /** Reads an {@code AttributeProto}: ints = 8 (packed or not), strings = 9. */
        private static void attribute(ByteBuffer bytes, List<String> keys) {
            Fields fields = new Fields(bytes);
            while (fields.next()) {
                ByteBuffer body = fields.body;
                if (fields.number == 8 && body == null) {
                    keys.add(Long.toString(fields.value));
                } else if (fields.number == 8 && body != null) {
                    while (body.hasRemaining()) {
                        keys.add(Long.toString(Fields.varint(body)));
                    }
                } else if (fields.number == 9 && body != null) {
                    keys.add(Fields.utf8(body));
                }
            }
        }

        private static String text(ByteBuffer bytes, int number) {
            Fields fields = new Fields(bytes);
            String found = "";
            while (fields.next()) {
                if (fields.number == number && fields.body != null) {
                    found = Fields.utf8(fields.body);
                }
            }
            return found;
        }
    }

    /** Iterates over the fields of one protobuf message. Confined to one read. */
    private static final class Fields {
        private final ByteBuffer bytes;
        int number;
        long value;

        @Nullable ByteBuffer body;

        Fields(ByteBuffer bytes) {
            this.bytes = bytes.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        }

        boolean next() {
            if (!bytes.hasRemaining()) {
                return false;
            }
            long tag = varint(bytes);
            number = (int) (tag >>> 3);
            body = null;
            value = 0;
            switch ((int) (tag & 7)) {
                case 0 -> value = varint(bytes);
                case 1 -> value = bytes.getLong();
                case 2 -> {
                    long length = varint(bytes);
                    if (length < 0 || length > bytes.remaining()) {
                        throw new IllegalArgumentException("length");
                    }
                    body = bytes.slice(bytes.position(), (int) length);
                    bytes.position(bytes.position() + (int) length);
                }
                case 5 -> value = bytes.getInt();
                default -> throw new IllegalArgumentException("wire type");
            }
            return true;
        }

        static long varint(ByteBuffer bytes) {
            long result = 0;
            for (int shift = 0; shift < 64; shift += 7) {
                byte b = bytes.get();
                result |= (long) (b & 0x7f) << shift;
                if (b >= 0) {
                    return result;
                }
            }
            throw new IllegalArgumentException("varint");
        }

        static String utf8(ByteBuffer bytes) {
            return StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
        }
    }
}
