// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.spi.ModelConfig;
import io.nereid.tensor.Tensor;
import java.util.Arrays;
import java.util.List;

/** Sums by row, for direct sequences: each has the same row in every run. Confined to one instance. */
final class SlotSums extends Sums {
    private double[] sums = new double[1];

    SlotSums(ModelConfig config) {
        super(config);
    }

    @Override
    BuiltInModel forInstance() {
        return new SlotSums(config());
    }

    @Override
    double add(List<Tensor> inputs, int row, double value) {
        if (row >= sums.length) {
            sums = Arrays.copyOf(sums, Math.max(row + 1, maxBatchSize()));
        }
        if (yes(inputs, "READY", row)) {
            sums[row] = yes(inputs, "START", row) ? value : sums[row] + value;
        }
        return sums[row];
    }
}
