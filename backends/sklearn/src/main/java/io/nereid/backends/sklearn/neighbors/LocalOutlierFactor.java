// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neighbors;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.OutlierDetector;

/**
 * {@code LocalOutlierFactor} with {@code novelty=True}: compares the density around a row with that around its
 * neighbours (Breunig, Kriegel, Ng and Sander, LOF: Identifying Density-Based Local Outliers, 2000). Immutable.
 */
public final class LocalOutlierFactor extends OutlierDetector {
    private final TrainingSamples samples;
    private final int k;
    /** By sample, the distance of its k-th neighbour. */
    private final double[] reach;
    /** By sample, the local reachability density. */
    private final double[] density;

    private LocalOutlierFactor(EstimatorAttributes f, TrainingSamples samples) {
        super(f.type(), samples.features(), f.number("offset_"));
        this.samples = samples;
        this.k = samples.neighbours(f, f.integer("n_neighbors_", 0));
        this.density = f.doubles(samples.count(), "_lrd");
        DenseMatrix distances = DenseMatrix.of(f, samples.count(), k, "_distances_fit_X_");
        this.reach = new double[samples.count()];
        for (int i = 0; i < reach.length; i++) {
            reach[i] = distances.at(i, k - 1);
        }
    }

    public static LocalOutlierFactor of(EstimatorAttributes f) {
        if (!f.flag("novelty", false)) {
            // Without it the class only labels the rows that it was fitted to.
            throw f.unsupported("novelty");
        }
        return new LocalOutlierFactor(f, TrainingSamples.of(f));
    }

    @Override
    protected double[] scores(DataTable table) {
        double[] x = table.finite(type());
        double[] scores = new double[table.rows()];
        int[] found = new int[k];
        double[] distances = new double[k];
        for (int r = 0; r < scores.length; r++) {
            samples.nearest(x, r * table.columns(), found, distances);
            double sum = 0;
            double densities = 0;
            for (int i = 0; i < k; i++) {
                sum += Math.max(distances[i], reach[found[i]]);
                densities += density[found[i]];
            }
            scores[r] = -(densities / k) * (sum / k + 1e-10);
        }
        return scores;
    }
}
