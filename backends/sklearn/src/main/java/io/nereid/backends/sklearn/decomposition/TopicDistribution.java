// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.decomposition;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.base.ServingException;
import java.util.Arrays;

/**
 * {@code LatentDirichletAllocation}: how much of each topic a row of word counts has, by variational inference (Hoffman,
 * Blei and Bach, Online Learning for Latent Dirichlet Allocation, 2010, algorithm 1, E step). Immutable.
 */
public final class TopicDistribution extends Transformer {
    private static final double EULER = 0.5772156649015329;
    private static final int MOST_ROUNDS = 100_000;

    /** By topic, the exponential of the expected logarithm of each word's probability. */
    private final DenseMatrix words;

    private final double prior;
    private final int rounds;
    private final double tolerance;

    private TopicDistribution(EstimatorAttributes f, DenseMatrix words) {
        super(f.type(), words.columns(), words.rows());
        this.words = words;
        this.prior = f.number("doc_topic_prior_");
        this.rounds = f.integer("max_doc_update_iter", 100);
        this.tolerance = f.number("mean_change_tol", 1e-3);
        if (rounds > MOST_ROUNDS) {
            throw f.unsupported("max_doc_update_iter");
        }
    }

    public static TopicDistribution of(EstimatorAttributes f) {
        return new TopicDistribution(f, DenseMatrix.of(f, -1, -1, "exp_dirichlet_component_"));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int topics = words.rows();
        DataTable result = DataTable.of(table.rows(), topics);
        double[] weights = new double[topics];
        double[] now = new double[topics];
        double[] last = new double[topics];
        double[] scaled = new double[table.columns()];
        for (int r = 0; r < table.rows(); r++) {
            int from = r * table.columns();
            for (int i = from; i < from + table.columns(); i++) {
                if (x[i] < 0) {
                    throw ServingException.invalidArgument(
                            type() + " was given " + x[i] + " (expected: counts of at least 0)");
                }
            }
            Arrays.fill(now, 1);
            Arrays.fill(weights, Math.exp(psi(1) - psi(topics)));
            for (int round = 0; round < rounds; round++) {
                System.arraycopy(now, 0, last, 0, topics);
                update(x, from, weights, scaled, now);
                double change = 0;
                for (int t = 0; t < topics; t++) {
                    change += Math.abs(last[t] - now[t]);
                }
                if (change / topics < tolerance) {
                    break;
                }
            }
            double sum = 0;
            for (double v : now) {
                sum += v;
            }
            for (int t = 0; t < topics; t++) {
                result.values()[r * topics + t] = now[t] / sum;
            }
        }
        return result;
    }

    private void update(double[] x, int from, double[] weights, double[] scaled, double[] now) {
        double[] all = words.values();
        int columns = words.columns();
        for (int c = 0; c < columns; c++) {
            scaled[c] = 0;
            if (x[from + c] != 0) {
                double norm = Math.ulp(1.0);
                for (int t = 0; t < weights.length; t++) {
                    norm += weights[t] * all[t * columns + c];
                }
                scaled[c] = x[from + c] / norm;
            }
        }
        double total = 0;
        for (int t = 0; t < weights.length; t++) {
            now[t] = weights[t] * words.dot(t, scaled, 0) + prior;
            total += now[t];
        }
        double psiTotal = psi(total);
        for (int t = 0; t < weights.length; t++) {
            weights[t] = Math.exp(psi(now[t]) - psiTotal);
        }
    }

    /** The digamma function with as many terms as scikit-learn takes here, whose result depends on their number. */
    private static double psi(double given) {
        if (given <= 1e-6) {
            return -EULER - 1 / given;
        }
        double x = given;
        double result = 0;
        while (x < 6) {
            result -= 1 / x;
            x++;
        }
        double r = 1 / x;
        result += Math.log(x) - 0.5 * r;
        r *= r;
        return result - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252)));
    }
}
