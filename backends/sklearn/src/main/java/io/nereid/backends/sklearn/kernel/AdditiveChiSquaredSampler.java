// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.base.ServingException;

/**
 * {@code AdditiveChi2Sampler}: samples of the spectrum of the additive chi-squared kernel (Vedaldi and Zisserman, Efficient
 * Additive Kernels via Explicit Feature Maps, 2011). Immutable.
 */
public final class AdditiveChiSquaredSampler extends Transformer {
    private final int steps;
    private final double interval;

    private AdditiveChiSquaredSampler(EstimatorAttributes f, int steps, double interval) {
        super(f.type(), f.features(), f.features() < 0 ? -1 : f.features() * (2 * steps - 1));
        this.steps = steps;
        this.interval = interval;
    }

    public static AdditiveChiSquaredSampler of(EstimatorAttributes f) {
        int steps = f.integer("sample_steps", 2);
        if (steps < 1 || steps > 1000 || (steps > 3 && !f.has("sample_interval"))) {
            throw f.unsupported("sample_steps");
        }
        if ((long) f.features() * (2 * steps - 1) > 1 << 24) {
            throw f.unsupported("n_features_in_");
        }
        return new AdditiveChiSquaredSampler(
                f, steps, f.number("sample_interval", steps == 1 ? 0.8 : steps == 2 ? 0.5 : 0.4));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int columns = table.columns();
        int width = columns * (2 * steps - 1);
        DataTable result = DataTable.of(table.rows(), width);
        double[] to = result.values();
        for (int r = 0; r < table.rows(); r++) {
            for (int i = 0; i < columns; i++) {
                double v = x[r * columns + i];
                if (v < 0) {
                    throw ServingException.invalidArgument(
                            type() + " was given " + v + " (expected: numbers of at least 0)");
                }
                int at = r * width + i;
                if (v == 0) {
                    continue;
                }
                to[at] = Math.sqrt(v * interval);
                double angle = interval * Math.log(v);
                for (int j = 1; j < steps; j++) {
                    double factor = Math.sqrt(2 * v * interval / Math.cosh(Math.PI * j * interval));
                    to[at + (2 * j - 1) * columns] = factor * Math.cos(j * angle);
                    to[at + 2 * j * columns] = factor * Math.sin(j * angle);
                }
            }
        }
        return result;
    }
}
