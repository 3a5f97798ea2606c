// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Makes tensors from columns: views of the body where type and layout allow it, else copies, which take no more than a
 * limit for all tensors of a request. A view may begin at any address; the engine aligns what a backend wants aligned.
 * Confined to one thread; used for one request.
 */
final class ColumnTensors {
    /** Rows that are copied of each column before the next ones, so that they stay in the cache. */
    private static final int ROWS = 256;

    private final MemoryRegion body;
    private final NumberColumns numbers;
    private final TextColumns texts;
    private final long limit;
    private long copied;

    /** @param limit the bytes that the copies of all tensors may take */
    ColumnTensors(MemoryRegion body, long limit) {
        this.body = body;
        this.limit = limit;
        this.numbers = new NumberColumns(body);
        this.texts = new TextColumns(body);
    }

    /** The tensor of one column; the caller owns it. The shape has as many elements as the column. */
    Tensor of(ArrowColumn column, String input, DataType type, Shape shape) {
        if (type == DataType.BYTES) {
            return text(List.of(column), input, shape);
        }
        ArrowField field = column.field();
        NumberColumns.check(field, input, type);
        numbers.checkNulls(column, input, type);
        if (field.type() == type
                && field.layout() == ColumnLayout.FIXED
                && column.chunks().size() == 1
                && !column.hasNulls()) {
            ColumnChunk chunk = column.chunks().get(0);
            int bytes = Math.multiplyExact(chunk.elements(), type.size());
            return bytes == 0
                    ? Tensor.over(input, type, shape, MemoryRegion.empty(), 0, 0)
                    : Tensor.over(input, type, shape, body.retain(), chunk.values(), bytes);
        }
        spend(input, shape.byteSize(type));
        Tensor tensor = Tensor.allocate(input, type, shape);
        try {
            ByteBuffer out = tensor.buffer();
            int before = 0;
            for (ColumnChunk chunk : column.chunks()) {
                int at = before * type.size();
                numbers.copy(field, chunk, 0, chunk.elements(), before, type, out, at, type.size());
                before += chunk.elements();
            }
            return tensor;
        } catch (RuntimeException e) {
            tensor.close();
            throw e;
        }
    }

    /** The tensor [rows, columns] of columns of plain values; the caller owns it. */
    Tensor matrix(List<ArrowColumn> columns, String input, DataType type, long rows) {
        Shape shape = Shape.of(rows, columns.size());
        if (type == DataType.BYTES) {
            return text(columns, input, shape);
        }
        for (ArrowColumn column : columns) {
            NumberColumns.check(column.field(), input, type);
            numbers.checkNulls(column, input, type);
        }
        spend(input, shape.byteSize(type));
        Tensor tensor = Tensor.allocate(input, type, shape);
        try {
            fill(columns, type, tensor.buffer());
            return tensor;
        } catch (RuntimeException e) {
            tensor.close();
            throw e;
        }
    }

    private void fill(List<ArrowColumn> columns, DataType type, ByteBuffer out) {
        int step = columns.size() * type.size();
        int before = 0;
        for (int k = 0; k < columns.get(0).chunks().size(); k++) {
            int elements = columns.get(0).chunks().get(k).elements();
            for (int row = 0; row < elements; row += ROWS) {
                int count = Math.min(ROWS, elements - row);
                for (int c = 0; c < columns.size(); c++) {
                    ArrowColumn column = columns.get(c);
                    int at = (before + row) * step + c * type.size();
                    numbers.copy(column.field(), column.chunks().get(k), row, count, before, type, out, at, step);
                }
            }
            before += elements;
        }
    }

    private Tensor text(List<ArrowColumn> columns, String input, Shape shape) {
        for (ArrowColumn column : columns) {
            TextColumns.check(column.field(), input);
        }
        long bytes = texts.size(columns, input);
        spend(input, bytes);
        MemoryRegion region = MemoryRegion.allocate((int) bytes);
        try {
            texts.copy(columns, region);
        } catch (RuntimeException e) {
            region.release();
            throw e;
        }
        return Tensor.over(input, DataType.BYTES, shape, region, 0, (int) bytes);
    }

    private void spend(String input, long bytes) {
        copied += bytes;
        if (copied > Math.min(limit, Integer.MAX_VALUE - MemoryRegion.ALIGNMENT)) {
            throw ServingException.invalidArgument(
                    "input '" + input + "' brings the converted inputs of the request to " + copied
                            + " bytes, which exceeds the maximum allowed value of " + limit + " bytes",
                    "split the table, or send columns of the types of the model's inputs");
        }
    }
}
