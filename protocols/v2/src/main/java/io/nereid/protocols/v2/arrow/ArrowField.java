// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;

/**
 * A column of a table, as its schema describes it. Immutable.
 *
 * @param name the column's name
 * @param typeName the type's name in Arrow, for messages
 * @param type the type of the values as elements of a tensor
 * @param layout how the values lie in memory
 * @param lists the sizes of the fixed-size lists around a value, outermost first; without dimensions for plain values
 * @param row the shape of a row: that of the lists, or the one that the extension {@code arrow.fixed_shape_tensor} gives
 */
record ArrowField(String name, String typeName, DataType type, ColumnLayout layout, Shape lists, Shape row) {
    /** The number of values in a row. */
    long width() {
        return lists.elementCount();
    }

    String label() {
        return "column '" + name + "'";
    }
}
