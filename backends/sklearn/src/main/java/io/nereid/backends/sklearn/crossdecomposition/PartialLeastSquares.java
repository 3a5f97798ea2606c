// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.crossdecomposition;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code PLSRegression}, {@code PLSCanonical}, {@code CCA} and {@code PLSSVD}: {@code transform} projects the scaled
 * columns; {@code predict} continues from there to the targets. The coefficients in the file differ in shape and scale
 * between versions, so that they are computed from rotations and loadings, which do not. Immutable.
 */
public final class PartialLeastSquares extends Estimator {
    private final double[] mean;
    private final double[] scale;
    /** By component, its rotation. */
    private final DenseMatrix rotations;
    /** By target, its coefficients for the centred columns; null for an estimator without {@code predict}. */
    private final @Nullable DenseMatrix coefficients;

    private final double[] intercepts;
    private final boolean flat;

    private PartialLeastSquares(
            EstimatorAttributes f,
            DenseMatrix rotations,
            @Nullable DenseMatrix coefficients,
            double[] intercepts,
            boolean flat) {
        super(f.type(), rotations.columns());
        this.rotations = rotations;
        this.coefficients = coefficients;
        this.intercepts = intercepts;
        this.flat = flat;
        mean = f.doubles(rotations.columns(), "_x_mean", "x_mean_");
        scale = f.doubles(rotations.columns(), "_x_std", "x_std_");
    }

    /** The projection of {@code PLSSVD}, which does not predict. */
    public static PartialLeastSquares svd(EstimatorAttributes f) {
        return new PartialLeastSquares(
                f, DenseMatrix.of(f, -1, -1, "x_weights_").transposed(), null, new double[0], false);
    }

    public static PartialLeastSquares of(EstimatorAttributes f) {
        DenseMatrix rotations = DenseMatrix.of(f, -1, -1, "x_rotations_");
        DenseMatrix loadings = DenseMatrix.of(f, -1, rotations.columns(), "y_loadings_");
        double[] scale = f.doubles(rotations.rows(), "_x_std", "x_std_");
        double[] targetScale = f.doubles(loadings.rows(), "_y_std", "y_std_");
        double[] all = new double[loadings.rows() * rotations.rows()];
        for (int t = 0; t < loadings.rows(); t++) {
            for (int i = 0; i < rotations.rows(); i++) {
                all[t * rotations.rows() + i] =
                        loadings.dot(t, rotations.values(), i * rotations.columns()) * targetScale[t] / scale[i];
            }
        }
        return new PartialLeastSquares(
                f,
                rotations.transposed(),
                DenseMatrix.over(loadings.rows(), rotations.rows(), all),
                f.doubles(loadings.rows(), "_y_mean", "y_mean_"),
                f.flag("_predict_1d", false));
    }

    @Override
    public boolean quick() {
        return rotations.values().length < 4096;
    }

    @Override
    public List<PredictMethod> methods() {
        return coefficients == null
                ? List.of(PredictMethod.TRANSFORM)
                : List.of(PredictMethod.PREDICT, PredictMethod.TRANSFORM);
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.TRANSFORM || coefficients == null
                ? rotations.rows()
                : flat ? 0 : coefficients.rows();
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        double[] x = table.finite(type());
        int n = rotations.columns();
        DenseMatrix predicting = method == PredictMethod.PREDICT ? coefficients : null;
        DenseMatrix by = predicting == null ? rotations : predicting;
        DataTable result = DataTable.of(table.rows(), by.rows());
        double[] centred = new double[n];
        for (int r = 0; r < table.rows(); r++) {
            for (int i = 0; i < n; i++) {
                double d = x[r * n + i] - mean[i];
                centred[i] = predicting == null ? d / scale[i] : d;
            }
            by.product(centred, 0, result.values(), r * by.rows());
            for (int t = 0; predicting != null && t < by.rows(); t++) {
                result.values()[r * by.rows() + t] += intercepts[t];
            }
        }
        return result;
    }
}
