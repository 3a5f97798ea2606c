// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import java.util.Arrays;
import java.util.List;

/**
 * Sums the values of a sequence by its row in the batch, for the direct strategy, with which a sequence has the same
 * row in every run. Confined to one instance.
 */
public final class SequenceModel extends SequenceSumModel {
    private double[] sums = new double[1];

    public SequenceModel(ModelConfig config) {
        super(config);
    }

    @Override
    public BuiltInModel forInstance() {
        return new SequenceModel(config());
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
