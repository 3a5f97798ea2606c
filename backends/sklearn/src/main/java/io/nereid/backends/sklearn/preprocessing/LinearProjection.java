// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import org.jspecify.annotations.Nullable;

/** {@code PCA}, {@code IncrementalPCA} and {@code TruncatedSVD}: the projection of a row on components. Immutable. */
public final class LinearProjection extends Transformer {
    private final double @Nullable [] mean;
    private final double[][] components;
    private final double @Nullable [] divided;

    private LinearProjection(
            EstimatorAttributes f, double @Nullable [] mean, double[][] components, double @Nullable [] divided) {
        super(f.type(), components[0].length, components.length);
        this.mean = mean;
        this.components = components;
        this.divided = divided;
    }

    private static double[][] components(EstimatorAttributes f) {
        double[][] components = MatrixOps.rows(f, -1, -1, "components_");
        if (components.length == 0) {
            throw UnsupportedModel.unsupported(f.path() + " has no components");
        }
        return components;
    }

    public static LinearProjection pca(EstimatorAttributes f) {
        double[][] components = components(f);
        double[] divided = null;
        if (f.flag("whiten", false)) {
            divided = f.doubles(components.length, "explained_variance_");
            for (int i = 0; i < divided.length; i++) {
                divided[i] = Math.max(Math.sqrt(divided[i]), 2.220446049250313e-16);
            }
        }
        return new LinearProjection(f, f.optional(components[0].length, "mean_"), components, divided);
    }

    public static LinearProjection svd(EstimatorAttributes f) {
        return new LinearProjection(f, null, components(f), null);
    }

    @Override
    public boolean quick() {
        return components.length * components[0].length < 4096;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), components.length);
        double[] row = new double[table.columns()];
        for (int r = 0; r < table.rows(); r++) {
            for (int c = 0; c < row.length; c++) {
                row[c] = x[r * row.length + c] - (mean == null ? 0 : mean[c]);
            }
            for (int k = 0; k < components.length; k++) {
                double v = MatrixOps.dot(row, 0, components[k]);
                result.values()[r * components.length + k] = divided == null ? v : v / divided[k];
            }
        }
        return result;
    }
}
