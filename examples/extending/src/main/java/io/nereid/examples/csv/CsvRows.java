// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.csv;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Converts between lines of numbers and FP32 tensors of two dimensions. Stateless. */
final class CsvRows {
    private CsvRows() {}

    /**
     * Reads a body.
     *
     * @return a tensor of shape [lines, numbers of a line], owned by the caller
     * @throws ServingException INVALID_ARGUMENT for a text that is not a table of numbers
     */
    static Tensor read(MemoryRegion body, String name) {
        byte[] bytes = new byte[body.size()];
        body.getBytes(0, bytes, 0, bytes.length);
        List<String> lines = new String(bytes, StandardCharsets.UTF_8).lines().toList();
        if (lines.isEmpty()) {
            throw ServingException.invalidArgument("the body is empty (expected: a line of numbers for each row)");
        }
        int columns = lines.get(0).split(",", -1).length;
        Tensor rows = Tensor.allocate(name, DataType.FP32, Shape.of(lines.size(), columns));
        try {
            ByteBuffer to = rows.buffer();
            for (int i = 0; i < lines.size(); i++) {
                String[] cells = lines.get(i).split(",", -1);
                if (cells.length != columns) {
                    throw ServingException.invalidArgument(
                            "line " + (i + 1) + " has " + cells.length + " values (expected: " + columns + ")");
                }
                for (String cell : cells) {
                    to.putFloat(number(cell, i + 1));
                }
            }
            return rows;
        } catch (ServingException e) {
            rows.close();
            throw e;
        }
    }

    private static float number(String cell, int line) {
        try {
            return Float.parseFloat(cell.strip());
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument(
                    "line " + line + " has the value '" + cell + "' (expected: a number)");
        }
    }

    /**
     * Writes an output, a line for each element of its first dimension.
     *
     * @throws ServingException UNIMPLEMENTED for a tensor of another type than FP32
     */
    static String write(Tensor output) {
        if (output.dataType() != DataType.FP32) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "output '" + output.name() + "' is " + output.dataType() + " (expected: FP32)");
        }
        long elements = output.shape().elementCount();
        long rows = output.shape().rank() == 0 ? 1 : output.shape().dim(0);
        long columns = rows == 0 ? 0 : elements / rows;
        ByteBuffer from = output.buffer();
        StringBuilder text = new StringBuilder();
        for (long i = 0; i < elements; i++) {
            text.append(from.getFloat()).append((i + 1) % columns == 0 ? '\n' : ',');
        }
        return text.toString();
    }
}
