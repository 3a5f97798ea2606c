// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;

/**
 * Validates a model's FlatBuffer before TensorFlow Lite reads it. TensorFlow Lite trusts the offsets and indices in a
 * file, and a wrong one crashes the process; so every one that it follows is checked here first. Immutable.
 *
 * <p>Field numbers are those of TensorFlow Lite's schema.fbs. In a FlatBuffer, a table begins with the (backward)
 * distance to its vtable, which has the 16-bit offset of each field; lists and strings begin with their 32-bit length.
 */
final class FlatBufferModelReader {
    private static final int CUSTOM = 32;
    private static final int MOST_OPERATORS = 1024;

    /** Bytes of an element by its {@code TensorType} number; 0 for types without a fixed number of whole bytes. */
    private static final int[] SIZES = {4, 2, 4, 1, 8, 0, 1, 2, 8, 1, 8, 16, 8, 0, 0, 4, 2, 0, 2, 0};

    private static final byte[] IDENTIFIER = {'T', 'F', 'L', '3'};

    private FlatBufferModelReader() {}

    /** Whether a file begins with an offset and the file identifier {@code TFL3}. */
    static boolean recognises(Path file) {
        byte[] head = new byte[8];
        try (InputStream in = Files.newInputStream(file)) {
            return in.readNBytes(head, 0, 8) == 8 && hasIdentifier(head);
        } catch (IOException e) {
            return false;
        }
    }

    private static boolean hasIdentifier(byte[] bytes) {
        for (int i = 0; i < IDENTIFIER.length; i++) {
            if (bytes[4 + i] != IDENTIFIER[i]) {
                return false;
            }
        }
        return true;
    }

    /**
     * Rejects files that are not TensorFlow Lite models, damaged ones, and models with custom operators that TensorFlow
     * Lite does not have.
     *
     * @throws ServingException INVALID_ARGUMENT with the reason
     */
    static void check(String model, Path file, byte[] bytes) {
        if (bytes.length < 16 || !hasIdentifier(bytes)) {
            throw rejected(
                    model, file, "it is not a TensorFlow Lite model", "convert the model with tf.lite.TFLiteConverter");
        }
        Set<String> custom;
        try {
            custom = walked(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
        } catch (IndexOutOfBoundsException | ArithmeticException e) {
            throw rejected(
                    model,
                    file,
                    "it is damaged or truncated",
                    "copy the file again, and compare its length and checksum with the original's");
        }
        if (custom.stream().anyMatch(name -> name.startsWith("Flex"))) {
            throw rejected(
                    model,
                    file,
                    "it uses operators of TensorFlow itself (" + String.join(", ", custom) + ")",
                    "convert it without SELECT_TF_OPS, or serve the SavedModel with the tensorflow plugin");
        }
        // TensorFlow Lite has this custom operator built in.
        custom.removeAll(Set.of("TFLite_Detection_PostProcess"));
        if (!custom.isEmpty()) {
            throw rejected(
                    model,
                    file,
                    "it uses custom operators that TensorFlow Lite does not have (" + String.join(", ", custom) + ")",
                    "convert the model with standard operators, or export it to ONNX");
        }
    }

    private static ServingException rejected(String model, Path file, String what, String remedy) {
        return ServingException.invalidArgument(
                "unable to load model '" + model + "' from '" + file + "': " + what, remedy);
    }

    /**
     * Checks every offset and index in the file: operator codes, buffers, subgraphs and signatures.
     *
     * @return the names of custom operators
     */
    private static Set<String> walked(ByteBuffer in) {
        Set<String> custom = new TreeSet<>();
        int model = in.getInt(0);
        int[] codes = tables(in, model, 1);
        for (int code : codes) {
            int old = field(in, code, 0);
            int now = field(in, code, 3);
            int number = Math.max(old == 0 ? 0 : in.get(old), now == 0 ? 0 : in.getInt(now));
            String name = text(in, code, 1);
            if (number == CUSTOM) {
                custom.add(name);
            }
            must(number >= 0 && number < MOST_OPERATORS);
        }
        int[] buffers = tables(in, model, 4);
        long[] sizes = new long[buffers.length];
        for (int i = 0; i < buffers.length; i++) {
            int data = field(in, buffers[i], 0);
            sizes[i] = data == 0 ? 0 : length(in, data, 1);
            long from = wide(in, buffers[i], 1);
            long size = wide(in, buffers[i], 2);
            must(from >= 0 && size >= 0 && (from <= 1 || from + size <= in.capacity()));
            sizes[i] = from > 1 ? size : sizes[i];
        }
        int[] graphs = tables(in, model, 2);
        must(graphs.length > 0);
        int[] tensors = new int[graphs.length];
        for (int g = 0; g < graphs.length; g++) {
            tensors[g] = graph(in, graphs[g], codes.length, sizes);
        }
        for (int signature : tables(in, model, 7)) {
            long graph = number(in, signature, 4);
            must(graph >= 0 && graph < graphs.length);
            for (int side = 0; side < 2; side++) {
                for (int map : tables(in, signature, side)) {
                    long tensor = number(in, map, 1);
                    must(tensor >= 0 && tensor < tensors[(int) graph]);
                    text(in, map, 0);
                }
            }
        }
        return custom;
    }

    /** Checks one subgraph and returns the number of its tensors. */
    private static int graph(ByteBuffer in, int graph, int codes, long[] buffers) {
        int[] tensors = tables(in, graph, 0);
        for (int tensor : tensors) {
            long elements = 1;
            for (int dim : numbers(in, tensor, 0)) {
                must(dim >= 0);
                elements = Math.multiplyExact(elements, dim);
            }
            for (int dim : numbers(in, tensor, 7)) {
                must(dim >= -1);
            }
            int type = field(in, tensor, 1);
            int number = type == 0 ? 0 : in.get(type);
            must(number >= 0 && number < SIZES.length);
            long buffer = number(in, tensor, 2);
            must(buffer >= 0 && buffer < buffers.length);
            long size = buffers[(int) buffer];
            boolean sparse = field(in, tensor, 6) != 0;
            must(size == 0 || SIZES[number] == 0 || sparse || Math.multiplyExact(elements, SIZES[number]) == size);
            text(in, tensor, 3);
        }
        for (int side = 1; side <= 2; side++) {
            indices(in, graph, side, tensors.length, 0);
        }
        for (int operator : tables(in, graph, 3)) {
            long code = number(in, operator, 0);
            must(code >= 0 && code < codes);
            // An optional input that is left out has index -1.
            indices(in, operator, 1, tensors.length, -1);
            indices(in, operator, 2, tensors.length, 0);
            indices(in, operator, 8, tensors.length, -1);
        }
        return tensors.length;
    }

    private static void indices(ByteBuffer in, int table, int field, int count, int least) {
        for (int index : numbers(in, table, field)) {
            must(index >= least && index < count);
        }
    }

    private static void must(boolean holds) {
        if (!holds) {
            throw new IndexOutOfBoundsException();
        }
    }

    static long number(ByteBuffer in, int table, int index) {
        int at = field(in, table, index);
        return at == 0 ? 0 : in.getInt(at) & 0xffffffffL;
    }

    private static long wide(ByteBuffer in, int table, int index) {
        int at = field(in, table, index);
        return at == 0 ? 0 : in.getLong(at);
    }

    /** The length of the list that a field points to, which must lie inside the file. */
    static int length(ByteBuffer in, int at, int each) {
        int list = Math.addExact(at, in.getInt(at));
        int length = in.getInt(list);
        must(length >= 0 && list + 4L + (long) length * each <= in.capacity());
        return length;
    }

    static int[] numbers(ByteBuffer in, int table, int index) {
        int at = field(in, table, index);
        int[] numbers = new int[at == 0 ? 0 : length(in, at, 4)];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = in.getInt(at + in.getInt(at) + 4 + 4 * i);
        }
        return numbers;
    }

    static int[] tables(ByteBuffer in, int table, int index) {
        int[] tables = numbers(in, table, index);
        int at = field(in, table, index);
        for (int i = 0; i < tables.length; i++) {
            int place = at + in.getInt(at) + 4 + 4 * i;
            tables[i] = Math.addExact(place, tables[i]);
            must(tables[i] >= 0 && tables[i] <= in.capacity() - 4);
        }
        return tables;
    }

    private static String text(ByteBuffer in, int table, int index) {
        int at = field(in, table, index);
        if (at == 0) {
            return "";
        }
        byte[] bytes = new byte[length(in, at, 1)];
        in.get(at + in.getInt(at) + 4, bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The position of a table's field, from the vtable; 0 when the field is absent. */
    static int field(ByteBuffer in, int table, int index) {
        int fields = Math.subtractExact(table, in.getInt(table));
        int at = 4 + 2 * index;
        int offset = at < (in.getShort(fields) & 0xffff) ? in.getShort(fields + at) & 0xffff : 0;
        return offset == 0 ? 0 : table + offset;
    }
}
