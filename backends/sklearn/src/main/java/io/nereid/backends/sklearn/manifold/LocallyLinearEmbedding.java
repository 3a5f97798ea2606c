// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.manifold;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.neighbors.TrainingSamples;

/**
 * {@code LocallyLinearEmbedding}: a row is a weighted mean of its neighbours, and its embedding that of theirs (Roweis and
 * Saul, Nonlinear Dimensionality Reduction by Locally Linear Embedding, 2000). Immutable.
 */
public final class LocallyLinearEmbedding extends Transformer {
    private final TrainingSamples samples;
    private final DenseMatrix points;
    private final int k;
    private final DenseMatrix embedding;
    private final double regularization;

    private LocallyLinearEmbedding(EstimatorAttributes f, EstimatorAttributes neighbours, DenseMatrix embedding) {
        super(f.type(), DenseMatrix.of(neighbours, -1, -1, "_fit_X").columns(), embedding.columns());
        this.samples = TrainingSamples.of(neighbours);
        this.points = DenseMatrix.of(neighbours, embedding.rows(), -1, "_fit_X");
        this.k = samples.neighbours(f, f.integer("n_neighbors", 5));
        this.embedding = embedding;
        this.regularization = f.number("reg", 1e-3);
    }

    public static LocallyLinearEmbedding of(EstimatorAttributes f) {
        return new LocallyLinearEmbedding(
                f, new EstimatorAttributes(f.object("nbrs_")), DenseMatrix.of(f, -1, -1, "embedding_"));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int width = embedding.columns();
        DataTable result = DataTable.of(table.rows(), width);
        int[] found = new int[k];
        double[] weights = new double[k];
        double[] gram = new double[k * k];
        for (int r = 0; r < table.rows(); r++) {
            int from = r * table.columns();
            samples.nearest(x, from, found, weights);
            weigh(x, from, found, gram, weights);
            for (int i = 0; i < k; i++) {
                for (int c = 0; c < width; c++) {
                    result.values()[r * width + c] += weights[i] * embedding.at(found[i], c);
                }
            }
        }
        return result;
    }

    /** The weights of the neighbours that rebuild the row best: a system of equations, by Cholesky's decomposition. */
    private void weigh(double[] x, int from, int[] found, double[] gram, double[] weights) {
        double trace = 0;
        for (int i = 0; i < k; i++) {
            for (int j = 0; j <= i; j++) {
                double sum = 0;
                for (int c = 0; c < points.columns(); c++) {
                    sum += (points.at(found[i], c) - x[from + c]) * (points.at(found[j], c) - x[from + c]);
                }
                gram[i * k + j] = sum;
            }
            trace += gram[i * k + i];
        }
        double added = trace > 0 ? regularization * trace : regularization;
        for (int i = 0; i < k; i++) {
            gram[i * k + i] += added;
            weights[i] = 1;
            for (int j = 0; j <= i; j++) {
                double sum = gram[i * k + j];
                for (int c = 0; c < j; c++) {
                    sum -= gram[i * k + c] * gram[j * k + c];
                }
                gram[i * k + j] = i == j ? Math.sqrt(sum) : sum / gram[j * k + j];
                weights[i] -= i == j ? 0 : gram[i * k + j] * weights[j];
            }
            weights[i] /= gram[i * k + i];
        }
        double total = 0;
        for (int i = k - 1; i >= 0; i--) {
            for (int j = i + 1; j < k; j++) {
                weights[i] -= gram[j * k + i] * weights[j];
            }
            weights[i] /= gram[i * k + i];
            total += weights[i];
        }
        for (int i = 0; i < k; i++) {
            weights[i] /= total;
        }
    }
}
