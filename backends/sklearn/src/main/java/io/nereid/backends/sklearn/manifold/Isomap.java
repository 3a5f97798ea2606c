// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.manifold;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.neighbors.TrainingSamples;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;

/**
 * {@code Isomap}: distances along the graph of neighbours, projected by a kernel PCA (Tenenbaum, de Silva and Langford, A
 * Global Geometric Framework for Nonlinear Dimensionality Reduction, 2000). Immutable.
 */
public final class Isomap extends Transformer {
    private final TrainingSamples samples;
    private final int k;
    private final DenseMatrix distances;
    private final Estimator projection;

    private Isomap(EstimatorAttributes f, TrainingSamples samples, int k, Estimator projection) {
        super(f.type(), samples.features(), projection.width(PredictMethod.TRANSFORM));
        this.samples = samples;
        this.k = k;
        this.projection = projection;
        this.distances = DenseMatrix.of(f, samples.count(), samples.count(), "dist_matrix_");
    }

    public static Isomap of(EstimatorAttributes f, Estimator.Factory factory) {
        if (!f.has("n_neighbors")) {
            throw f.unsupported("radius");
        }
        TrainingSamples samples = TrainingSamples.of(new EstimatorAttributes(f.object("nbrs_")));
        Estimator projection = factory.build(f.required("kernel_pca_"));
        if (!projection.type().equals("KernelPCA") || projection.features() != samples.count()) {
            throw UnsupportedModel.corrupt(
                    f.path() + " projects " + projection.features() + " distances (expected: " + samples.count() + ")");
        }
        return new Isomap(f, samples, samples.neighbours(f, f.integer("n_neighbors", 5)), projection);
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int n = samples.count();
        DataTable graph = DataTable.of(table.rows(), n);
        int[] found = new int[k];
        double[] near = new double[k];
        double[] least = new double[n];
        for (int r = 0; r < table.rows(); r++) {
            samples.nearest(x, r * table.columns(), found, near);
            Arrays.fill(least, Double.POSITIVE_INFINITY);
            for (int i = 0; i < k; i++) {
                for (int s = 0; s < n; s++) {
                    least[s] = Math.min(least[s], near[i] + distances.at(found[i], s));
                }
            }
            for (int s = 0; s < n; s++) {
                graph.values()[r * n + s] = -0.5 * least[s] * least[s];
            }
        }
        return projection.checked(PredictMethod.TRANSFORM, graph);
    }
}
