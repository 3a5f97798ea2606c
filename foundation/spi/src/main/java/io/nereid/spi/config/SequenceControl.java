// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import io.nereid.tensor.DataType;

/**
 * A control tensor of the sequence batcher: one element for each row. Immutable.
 *
 * @param name the model's input
 * @param kind the meaning of the control
 * @param dataType INT32, FP32 or BOOL; for the correlation id also UINT64, INT64, UINT32 or BYTES
 * @param falseValue the value for false; unused for the correlation id
 * @param trueValue the value for true; unused for the correlation id
 */
public record SequenceControl(
        String name, SequenceControl.Kind kind, DataType dataType, double falseValue, double trueValue) {
    /** The meaning of a control. */
    public enum Kind {
        /** The request is the first of its sequence. */
        START,
        /** The row holds a request. */
        READY,
        /** The request is the last of its sequence. */
        END,
        /** The sequence's id. */
        CORRID
    }
}
