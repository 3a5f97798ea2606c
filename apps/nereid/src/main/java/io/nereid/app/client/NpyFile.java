// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.databind.node.ArrayNode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An array saved by {@code numpy.save} (format versions 1 to 3, C order, booleans and numbers).
 *
 * @param shape the dimensions
 * @param data the elements in row-major order
 */
record NpyFile(ArrayNode shape, ArrayNode data) {
    private static final Pattern DESCR = Pattern.compile("'descr':\\s*'([<>|=])([a-z])([0-9]+)'");
    private static final Pattern SHAPE = Pattern.compile("'shape':\\s*\\(([0-9, ]*)\\)");

    static NpyFile read(Path file) {
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (IOException e) {
            throw ServingException.invalidArgument("'" + file + "' cannot be read: " + e.getMessage());
        }
        if (bytes.length < 12
                || bytes[0] != (byte) 0x93
                || !new String(bytes, 1, 5, StandardCharsets.US_ASCII).equals("NUMPY")) {
            throw ServingException.invalidArgument("'" + file + "' is not an .npy file", "save it with numpy.save");
        }
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int start = bytes[6] == 1 ? 10 : 12;
        int length = bytes[6] == 1 ? Short.toUnsignedInt(in.getShort(8)) : in.getInt(8);
        if (length < 0 || length > bytes.length - start) {
            throw ServingException.invalidArgument("'" + file + "' is truncated");
        }
        String head = new String(bytes, start, length, StandardCharsets.UTF_8);
        Matcher descr = DESCR.matcher(head);
        Matcher dims = SHAPE.matcher(head);
        if (!descr.find() || !dims.find() || head.contains("'fortran_order': True")) {
            throw ServingException.invalidArgument(
                    "'" + file + "' has a layout that is not supported: " + head.strip(),
                    "save a plain array of numbers: numpy.save(f, numpy.ascontiguousarray(a))");
        }
        ArrayNode shape = ServerClient.JSON.createArrayNode();
        long count = 1;
        int size;
        long expected;
        try {
            for (String d : dims.group(1).split(",")) {
                if (!d.isBlank()) {
                    long dim = Long.parseLong(d.strip());
                    shape.add(dim);
                    count = Math.multiplyExact(count, dim);
                }
            }
            size = Integer.parseInt(descr.group(3));
            expected = Math.multiplyExact(count, size);
        } catch (NumberFormatException | ArithmeticException e) {
            throw ServingException.invalidArgument(
                    "'" + file + "' has the shape (" + dims.group(1) + ") of elements of " + descr.group(3)
                            + " bytes, which is not that of an array",
                    "save it again with numpy.save");
        }
        if (expected != bytes.length - start - length) {
            throw ServingException.invalidArgument("'" + file + "' has " + (bytes.length - start - length)
                    + " bytes of data (expected " + expected + ")");
        }
        in = in.slice(start + length, bytes.length - start - length)
                .order(descr.group(1).equals(">") ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
        ArrayNode data = ServerClient.JSON.createArrayNode();
        for (int i = 0; i < count; i++) {
            add(data, in, descr.group(2) + size, i * size, file);
        }
        return new NpyFile(shape, data);
    }

    private static void add(ArrayNode data, ByteBuffer in, String type, int at, Path file) {
        switch (type) {
            case "b1" -> data.add(in.get(at) != 0);
            case "i1" -> data.add(in.get(at));
            case "i2" -> data.add(in.getShort(at));
            case "i4" -> data.add(in.getInt(at));
            case "i8" -> data.add(in.getLong(at));
            case "u1" -> data.add(Byte.toUnsignedInt(in.get(at)));
            case "u2" -> data.add(Short.toUnsignedInt(in.getShort(at)));
            case "u4" -> data.add(Integer.toUnsignedLong(in.getInt(at)));
            case "u8" -> data.add(new java.math.BigInteger(Long.toUnsignedString(in.getLong(at))));
            case "f4" -> data.add(in.getFloat(at));
            case "f8" -> data.add(in.getDouble(at));
            default ->
                throw ServingException.invalidArgument(
                        "'" + file + "' has elements of type " + type + " (expected booleans or numbers)",
                        "convert it: a.astype('float32')");
        }
    }
}
