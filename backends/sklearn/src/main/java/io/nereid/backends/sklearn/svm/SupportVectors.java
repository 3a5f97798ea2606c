// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.svm;

import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import java.util.Locale;

/** The support vectors of a machine, and the kernel function between them and a row. Immutable. */
final class SupportVectors {
    /** The built-in kernels of libsvm. */
    private enum Kernel {
        LINEAR,
        POLY,
        RBF,
        SIGMOID
    }

    private final DenseMatrix vectors;
    private final Kernel kernel;
    private final double gamma;
    private final double coef0;
    private final double degree;

    SupportVectors(EstimatorAttributes f) {
        Kernel found = null;
        for (Kernel k : Kernel.values()) {
            found = k.name().toLowerCase(Locale.ROOT).equals(f.any("kernel")) ? k : found;
        }
        if (found == null) {
            throw f.unsupported("kernel");
        }
        kernel = found;
        vectors = DenseMatrix.of(f, -1, -1, "support_vectors_");
        gamma = f.number("_gamma", 0);
        coef0 = f.number("coef0", 0);
        degree = f.number("degree", 3);
    }

    int features() {
        return vectors.columns();
    }

    int count() {
        return vectors.rows();
    }

    /** Writes the kernel value of the row at {@code from} with each support vector to {@code to}. */
    void products(double[] x, int from, double[] to) {
        if (kernel == Kernel.RBF) {
            for (int i = 0; i < to.length; i++) {
                to[i] = Math.exp(-gamma * vectors.squaredDistance(i, x, from));
            }
            return;
        }
        vectors.product(x, from, to, 0);
        for (int i = 0; kernel != Kernel.LINEAR && i < to.length; i++) {
            double v = gamma * to[i] + coef0;
            to[i] = kernel == Kernel.POLY ? Math.pow(v, degree) : Math.tanh(v);
        }
    }
}
