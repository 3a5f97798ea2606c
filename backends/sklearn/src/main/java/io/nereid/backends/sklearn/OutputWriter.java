// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
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
        return type == DataType.BYTES ? texts(table, shape) : Tensor.ofDoubles(name, type, shape, table.values());
    }

    private Tensor texts(DataTable table, Shape shape) {
        byte[][] texts = new byte[table.values().length][];
        for (int i = 0; i < texts.length; i++) {
            String text = table.text(i / table.columns(), i % table.columns());
            texts[i] = (text == null ? "" : text).getBytes(StandardCharsets.UTF_8);
        }
        return Tensor.ofBytes(name, shape, texts);
    }
}
