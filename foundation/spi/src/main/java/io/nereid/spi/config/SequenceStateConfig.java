// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import org.jspecify.annotations.Nullable;

/**
 * An implicit state: a tensor that the server carries from one request of a sequence to the next. Immutable.
 *
 * @param inputName the model's input that receives the state
 * @param outputName the model's output that returns the new state
 * @param dataType the type of its elements
 * @param shape without the batch dimension; -1 for any size
 * @param initial the state for the first request of a sequence; null for zeros, or empty strings
 * @param sameBuffer whether input and output share one buffer
 */
public record SequenceStateConfig(
        String inputName,
        String outputName,
        DataType dataType,
        Shape shape,
        @Nullable InitialStateConfig initial,
        boolean sameBuffer) {}
