// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;

/**
 * A tensor that a model takes or gives. Immutable.
 *
 * @param name its name in the model
 * @param dataType type of its elements
 * @param shape its dimensions, -1 for any size
 * @param optional whether a request may leave it out
 */
public record TensorSpec(String name, DataType dataType, Shape shape, boolean optional) {
    /** A tensor that must be given. */
    public TensorSpec(String name, DataType dataType, Shape shape) {
        this(name, dataType, shape, false);
    }
}
