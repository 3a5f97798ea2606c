// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Converts the result of an estimator's method to an output tensor. Immutable.
 *
 * @param name the output's name
 * @param method the method of the estimator
 * @param type the output's data type
 * @param flat whether the output has the shape [rows], with one value per row
 */
record OutputWriter(String name, PredictMethod method, DataType type, boolean flat) {
    /** The result as a tensor, which the caller owns. */
    Tensor tensor(DataTable table) {
        Shape shape = flat ? Shape.of(table.rows()) : Shape.of(table.rows(), table.columns());
        double[] values = table.values();
        if (type == DataType.BYTES) {
            return texts(table, shape);
        }
        Tensor tensor = Tensor.allocate(name, type, shape);
        ByteBuffer to = tensor.buffer();
        switch (type) {
            case FP64 -> to.asDoubleBuffer().put(values);
            case FP32 -> {
                for (double v : values) {
                    to.putFloat((float) v);
                }
            }
            case INT64 -> {
                for (double v : values) {
                    to.putLong((long) v);
                }
            }
            case INT32 -> {
                for (double v : values) {
                    to.putInt((int) v);
                }
            }
            default -> {
                for (double v : values) {
                    to.put((byte) (v != 0 ? 1 : 0));
                }
            }
        }
        return tensor;
    }

    private Tensor texts(DataTable table, Shape shape) {
        byte[][] texts = new byte[table.values().length][];
        int size = 0;
        for (int i = 0; i < texts.length; i++) {
            String text = table.text(i / table.columns(), i % table.columns());
            texts[i] = (text == null ? "" : text).getBytes(StandardCharsets.UTF_8);
            size = Math.addExact(size, 4 + texts[i].length);
        }
        MemoryRegion region = MemoryRegion.allocate(size);
        int at = 0;
        for (byte[] text : texts) {
            region.setInt(at, text.length);
            region.setBytes(at + 4, text, 0, text.length);
            at += 4 + text.length;
        }
        return Tensor.over(name, type, shape, region, 0, size);
    }
}
