// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;

/** {@code KernelCenterer}: kernel values as if the mean of the training rows were zero. Immutable. */
public final class KernelCentring extends Transformer {
    /** By training row, the mean of its kernel values. */
    private final double[] means;

    private final double mean;

    private KernelCentring(EstimatorAttributes f, double[] means) {
        super(f.type(), means.length, means.length);
        this.means = means;
        this.mean = f.number("K_fit_all_");
    }

    public static KernelCentring of(EstimatorAttributes f) {
        return new KernelCentring(f, f.doubles("K_fit_rows_"));
    }

    @Override
    public boolean keepsWidth() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), means.length);
        System.arraycopy(x, 0, result.values(), 0, x.length);
        for (int r = 0; r < table.rows(); r++) {
            centre(result.values(), r * means.length);
        }
        return result;
    }

    /** Centres the values of one row in place. */
    void centre(double[] k, int from) {
        double own = 0;
        for (int i = 0; i < means.length; i++) {
            own += k[from + i];
        }
        own = own / means.length - mean;
        for (int i = 0; i < means.length; i++) {
            k[from + i] -= means[i] + own;
        }
    }
}
