// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.discriminant;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.List;

/**
 * {@code QuadraticDiscriminantAnalysis}: the log posterior of each class, whose covariance is stored as a rotation and
 * the variances along its axes. Immutable.
 */
public final class QuadraticDiscriminant extends Classifier {
    private final double[][] means;
    /** By class, the axes, each divided by its standard deviation. */
    private final double[][][] axes;

    private final double[] added;

    private QuadraticDiscriminant(
            EstimatorAttributes f, ClassLabels labels, double[][] means, double[][][] axes, double[] added) {
        super(f.type(), means[0].length, labels);
        this.means = means;
        this.axes = axes;
        this.added = added;
    }

    /** The classifier of its attributes. */
    public static QuadraticDiscriminant of(EstimatorAttributes f) {
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        double[][] means = MatrixOps.rows(f, labels.count(), -1, "means_");
        double[] priors = f.doubles(labels.count(), "priors_");
        List<Object> rotations = f.list("rotations_");
        List<Object> scalings = f.list("scalings_");
        if (rotations.size() != labels.count() || scalings.size() != labels.count()) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has " + rotations.size() + " covariances for " + labels.count() + " classes");
        }
        int n = means[0].length;
        double[][][] axes = new double[labels.count()][][];
        double[] added = new double[labels.count()];
        for (int k = 0; k < axes.length; k++) {
            if (!(rotations.get(k) instanceof NdArray rotation)
                    || !(scalings.get(k) instanceof NdArray scaling)
                    || rotation.count() != n * scaling.count()) {
                throw UnsupportedModel.corrupt(f.path() + " has a covariance of other columns");
            }
            double[] r = rotation.doubles();
            double[] s = scaling.doubles();
            axes[k] = new double[s.length][n];
            double logs = 0;
            for (int a = 0; a < s.length; a++) {
                double scale = Math.pow(s[a], -0.5);
                for (int i = 0; i < n; i++) {
                    axes[k][a][i] = r[i * s.length + a] * scale;
                }
                logs += Math.log(s[a]);
            }
            added[k] = Math.log(priors[k]) - 0.5 * logs;
        }
        return new QuadraticDiscriminant(f, labels, means, axes, added);
    }

    @Override
    public boolean hasProba() {
        return true;
    }

    @Override
    public boolean hasDecision() {
        return true;
    }

    @Override
    public DataTable proba(DataTable table) {
        DataTable posterior = posterior(table);
        softmax(posterior.values(), posterior.columns());
        return posterior;
    }

    @Override
    public DataTable decision(DataTable table) {
        DataTable posterior = posterior(table);
        if (posterior.columns() != 2) {
            return posterior;
        }
        double[] difference = new double[table.rows()];
        for (int r = 0; r < difference.length; r++) {
            difference[r] = posterior.at(r, 1) - posterior.at(r, 0);
        }
        return DataTable.column(difference);
    }

    @Override
    public int[] classes(DataTable table) {
        return ClassLabels.greatest(posterior(table));
    }

    private DataTable posterior(DataTable table) {
        double[] x = table.finite(type());
        int n = means[0].length;
        DataTable result = DataTable.of(table.rows(), means.length);
        double[] centred = new double[n];
        for (int r = 0; r < table.rows(); r++) {
            for (int k = 0; k < means.length; k++) {
                for (int i = 0; i < n; i++) {
                    centred[i] = x[r * n + i] - means[k][i];
                }
                double sum = 0;
                for (double[] axis : axes[k]) {
                    double y = MatrixOps.dot(centred, 0, axis);
                    sum += y * y;
                }
                result.values()[r * means.length + k] = added[k] - 0.5 * sum;
            }
        }
        return result;
    }
}
