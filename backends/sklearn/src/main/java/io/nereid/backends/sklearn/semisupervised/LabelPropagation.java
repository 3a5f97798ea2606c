// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.semisupervised;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.kernel.SampleKernel;
import io.nereid.backends.sklearn.neighbors.TrainingSamples;
import org.jspecify.annotations.Nullable;

/**
 * {@code LabelPropagation} and {@code LabelSpreading}: the mean of the label distributions of the training rows, weighted
 * by a kernel, or of the nearest ones. Immutable.
 */
public final class LabelPropagation extends Classifier {
    private final DenseMatrix distributions;
    private final @Nullable SampleKernel kernel;
    private final @Nullable TrainingSamples samples;
    private final int k;

    private LabelPropagation(
            EstimatorAttributes f,
            int features,
            DenseMatrix distributions,
            @Nullable SampleKernel kernel,
            @Nullable TrainingSamples samples,
            int k) {
        super(f.type(), features, ClassLabels.of(f.array("classes_")));
        this.distributions = distributions;
        this.kernel = kernel;
        this.samples = samples;
        this.k = k;
    }

    public static LabelPropagation of(EstimatorAttributes f) {
        DenseMatrix x = DenseMatrix.of(f, -1, -1, "X_");
        int classes = ClassLabels.of(f.array("classes_")).count();
        DenseMatrix distributions = DenseMatrix.of(f, x.rows(), classes, "label_distributions_");
        String kernel = f.text("kernel", "?");
        if (kernel.equals("rbf")) {
            SampleKernel rbf = SampleKernel.of(f, "kernel", x, f.number("gamma", 20));
            return new LabelPropagation(f, x.columns(), distributions, rbf, null, 0);
        }
        if (!kernel.equals("knn")) {
            throw f.unsupported("kernel");
        }
        EstimatorAttributes fitted = new EstimatorAttributes(f.object("nn_fit"));
        TrainingSamples samples = TrainingSamples.of(fitted);
        int k = samples.neighbours(f, fitted.integer("n_neighbors", 0));
        if (samples.count() != x.rows()) {
            throw f.unsupported("nn_fit");
        }
        return new LabelPropagation(f, samples.features(), distributions, null, samples, k);
    }

    @Override
    public boolean hasProba() {
        return true;
    }

    @Override
    public DataTable proba(DataTable table) {
        double[] x = table.finite(type());
        int classes = distributions.columns();
        DataTable result = DataTable.of(table.rows(), classes);
        int[] found = new int[k];
        double[] weights = new double[Math.max(k, distributions.rows())];
        for (int r = 0; r < table.rows(); r++) {
            int from = r * table.columns();
            if (kernel != null) {
                kernel.values(x, from, weights);
                for (int i = 0; i < distributions.rows(); i++) {
                    add(i, weights[i], result.values(), r * classes);
                }
            } else if (samples != null) {
                samples.nearest(x, from, found, weights);
                for (int i : found) {
                    add(i, 1, result.values(), r * classes);
                }
            }
            double sum = 0;
            for (int c = 0; c < classes; c++) {
                sum += result.values()[r * classes + c];
            }
            for (int c = 0; c < classes; c++) {
                result.values()[r * classes + c] /= sum;
            }
        }
        return result;
    }

    private void add(int sample, double weight, double[] to, int from) {
        for (int c = 0; c < distributions.columns(); c++) {
            to[from + c] += weight * distributions.at(sample, c);
        }
    }
}
