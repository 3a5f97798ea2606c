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
 * {@code NMF} and {@code MiniBatchNMF}: finds weights of at least zero whose product with the components is near the rows.
 * By coordinate descent (Cichocki and Phan, 2009), or by multiplicative updates (Fevotte and Idier, Algorithms for
 * Nonnegative Matrix Factorization with the Beta-Divergence, 2011). As in scikit-learn, all rows of a request converge
 * together, so that a row's weights depend on the others within the tolerance. Immutable.
 */
public final class NonNegativeFactorization extends Transformer {
    /** The distance of a 32-bit one to the next number; numbers below it are taken as it where they divide. */
    private static final double LEAST = 1.1920928955078125e-7;

    /** Beyond it, a file could keep a thread busy for days. */
    private static final int MOST_ROUNDS = 100_000;

    private final DenseMatrix components;
    /** By component, its products with all components, the L2 penalty included where coordinates are descended. */
    private final DenseMatrix gram;

    private final boolean descends;
    private final boolean batches;
    private final double beta;
    private final double gamma;
    private final double l1;
    private final double l2;
    private final double tolerance;
    private final int rounds;

    private NonNegativeFactorization(EstimatorAttributes f, DenseMatrix components, boolean batches) {
        super(f.type(), components.columns(), components.rows());
        this.components = components;
        this.batches = batches;
        String solver = f.text("solver", "cd");
        descends = !batches && solver.equals("cd");
        if (!descends && !batches && !solver.equals("mu")) {
            throw f.unsupported("solver");
        }
        if (descends && f.flag("shuffle", false)) {
            throw f.unsupported("shuffle");
        }
        beta = beta(f);
        gamma = beta < 1 ? 1 / (2 - beta) : beta > 2 ? 1 / (beta - 1) : 1;
        double penalty = penalty(f, components.columns());
        double ratio = f.number("l1_ratio", 0);
        l1 = penalty * ratio;
        l2 = penalty * (1 - ratio);
        tolerance = f.number("tol", 1e-4);
        rounds = batches && f.has("transform_max_iter")
                ? f.integer("transform_max_iter", 200)
                : f.integer("max_iter", 200);
        if (rounds > MOST_ROUNDS) {
            throw f.unsupported("max_iter");
        }
        int k = components.rows();
        double[] products = new double[k * k];
        for (int i = 0; i < k; i++) {
            components.product(components.values(), i * components.columns(), products, i * k);
            products[i * k + i] += descends ? l2 : 0;
        }
        gram = DenseMatrix.over(k, k, products);
    }

    public static NonNegativeFactorization of(EstimatorAttributes f) {
        return new NonNegativeFactorization(f, DenseMatrix.of(f, -1, -1, "components_"), false);
    }

    public static NonNegativeFactorization batches(EstimatorAttributes f) {
        return new NonNegativeFactorization(f, DenseMatrix.of(f, -1, -1, "components_"), true);
    }

    private static double beta(EstimatorAttributes f) {
        return switch (f.text("beta_loss", "")) {
            case "frobenius" -> 2;
            case "kullback-leibler" -> 1;
            case "itakura-saito" -> 0;
            case "" -> f.number("beta_loss");
            default -> throw f.unsupported("beta_loss");
        };
    }

    /** The penalty of weights: scaled by the columns from scikit-learn 1.0 on, and {@code alpha} before. */
    private static double penalty(EstimatorAttributes f, int columns) {
        boolean both = "both".equals(f.any("regularization"))
                || "transformation".equals(f.any("regularization"))
                || "deprecated".equals(f.any("regularization"));
        double old = both ? f.number("alpha", 0) : 0;
        boolean current = f.contains("alpha_W") && (f.number("alpha_W", 0) != 0 || !"same".equals(f.any("alpha_H")));
        return current ? f.number("alpha_W", 0) * columns : old;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        double sum = 0;
        double least = Double.POSITIVE_INFINITY;
        for (double v : x) {
            sum += v;
            least = Math.min(least, v);
        }
        if (least < 0 || (least == 0 && beta <= 0)) {
            throw ServingException.invalidArgument(type() + " was given " + least + " (expected: numbers "
                    + (beta <= 0 ? "above 0)" : "of at least 0)"));
        }
        DataTable result = DataTable.of(table.rows(), components.rows());
        if (descends) {
            descend(x, table.rows(), result.values());
        } else {
            Arrays.fill(result.values(), Math.sqrt(sum / Math.max(1, x.length) / components.rows()));
            update(x, table.rows(), result.values());
        }
        return result;
    }

    private void descend(double[] x, int rows, double[] w) {
        int k = components.rows();
        double[] xh = new double[w.length];
        for (int r = 0; r < rows; r++) {
            components.product(x, r * components.columns(), xh, r * k);
        }
        double first = 0;
        for (int round = 0; round < rounds; round++) {
            double violation = 0;
            for (int t = 0; t < k; t++) {
                double diagonal = gram.at(t, t);
                for (int r = 0; r < rows; r++) {
                    double gradient = gram.dot(t, w, r * k) - (xh[r * k + t] - l1);
                    double now = w[r * k + t];
                    violation += Math.abs(now == 0 ? Math.min(0, gradient) : gradient);
                    if (diagonal != 0) {
                        w[r * k + t] = Math.max(now - gradient / diagonal, 0);
                    }
                }
            }
            first = round == 0 ? violation : first;
            if (first == 0 || violation / first <= tolerance) {
                break;
            }
        }
    }

    private void update(double[] x, int rows, double[] w) {
        int k = components.rows();
        double[] wh = new double[components.columns()];
        double[] up = new double[k];
        double[] down = new double[k];
        double initial = batches ? 0 : divergence(x, rows, w, wh);
        double before = initial;
        for (int round = 1; round <= rounds; round++) {
            double changed = 0;
            double length = 0;
            for (int r = 0; r < rows; r++) {
                multipliers(x, r, w, wh, up, down);
                for (int i = 0; i < k; i++) {
                    int at = r * k + i;
                    double below = down[i] + (l1 > 0 ? l1 : 0) + (l2 > 0 ? l2 * w[at] : 0);
                    double factor = up[i] / (below == 0 ? LEAST : below);
                    double next = w[at] * (gamma == 1 ? factor : Math.pow(factor, gamma));
                    if (beta < 1 && !batches && next < Math.ulp(1.0)) {
                        next = 0;
                    }
                    changed += (next - w[at]) * (next - w[at]);
                    length += next * next;
                    w[at] = next;
                }
            }
            if (batches) {
                if (tolerance > 0 && Math.sqrt(changed) / Math.sqrt(length) <= tolerance) {
                    break;
                }
            } else if (tolerance > 0 && round % 10 == 0) {
                double error = divergence(x, rows, w, wh);
                if ((before - error) / initial < tolerance) {
                    break;
                }
                before = error;
            }
        }
    }

    private void product(double[] w, int row, double[] wh) {
        Arrays.fill(wh, 0);
        double[] all = components.values();
        for (int i = 0; i < components.rows(); i++) {
            double v = w[row * components.rows() + i];
            for (int c = 0; c < wh.length; c++) {
                wh[c] += v * all[i * wh.length + c];
            }
        }
    }

    /** The numerator and the denominator of a row's update. */
    private void multipliers(double[] x, int row, double[] w, double[] wh, double[] up, double[] down) {
        int from = row * wh.length;
        if (beta == 2) {
            components.product(x, from, up, 0);
            gram.product(w, row * components.rows(), down, 0);
            return;
        }
        product(w, row, wh);
        double[] all = components.values();
        for (int i = 0; i < up.length; i++) {
            double above = 0;
            double below = 0;
            for (int c = 0; c < wh.length; c++) {
                double h = all[i * wh.length + c];
                double safe = beta < 2 ? Math.max(wh[c], LEAST) : wh[c];
                above += x[from + c] * power(safe, beta - 2) * h;
                double kept = beta < 1 ? Math.max(wh[c], LEAST) : wh[c];
                below += beta == 1 ? h : power(kept, beta - 1) * h;
            }
            up[i] = above;
            down[i] = below;
        }
    }

    private static double power(double v, double exponent) {
        return exponent == -1 ? 1 / v : exponent == -2 ? 1 / (v * v) : Math.pow(v, exponent);
    }

    /** The square root of twice the beta-divergence between the rows and their approximation. */
    private double divergence(double[] x, int rows, double[] w, double[] wh) {
        double sum = 0;
        for (int r = 0; r < rows; r++) {
            product(w, r, wh);
            for (int c = 0; c < wh.length; c++) {
                double v = x[r * wh.length + c];
                double y = wh[c];
                double safe = Math.max(y, LEAST);
                boolean counts = v > LEAST;
                if (beta == 2) {
                    sum += (v - y) * (v - y) / 2;
                } else if (beta == 1) {
                    sum += y + (counts ? v * Math.log(v / safe) - v : 0);
                } else if (beta == 0) {
                    sum += (counts ? v / safe - Math.log(v / safe) : 0) - 1;
                } else {
                    double known = counts ? Math.pow(v, beta) - beta * v * Math.pow(safe, beta - 1) : 0;
                    sum += (known + (beta - 1) * Math.pow(counts ? safe : y, beta)) / (beta * (beta - 1));
                }
            }
        }
        return Math.sqrt(2 * Math.max(sum, 0));
    }
}
