// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.List;

/**
 * Padding and splitting of batches, as in TensorFlow Serving's batching parameters. Immutable.
 *
 * @param allowedSizes the only batch sizes with which the model runs, ascending; smaller batches are padded with
 *     copies of a row, whose results are discarded; empty for any size
 * @param padVariableLength whether inputs of different shapes are padded to the largest shape in the batch, each
 *     with its own first element
 * @param maxRequestRows the most rows of one request, which is split into several runs when it exceeds
 *     {@code maxBatchSize}; 0 when requests are never split
 * @param maxEnqueuedBatches the most batches that may wait; 0 for no limit
 */
public record BatchSizePolicy(
        List<Integer> allowedSizes, boolean padVariableLength, int maxRequestRows, int maxEnqueuedBatches) {
    /** Neither padding nor splitting. */
    public static final BatchSizePolicy NONE = new BatchSizePolicy(List.of(), false, 0, 0);
}
