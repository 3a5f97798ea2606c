// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neighbors;

import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.PyNone;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;

/**
 * The training samples of an estimator that compares rows with them, and the metric, one of Minkowski's. Compares with
 * all samples; the tree in the file is not used, because it changes the speed only, not the result. Immutable.
 */
public final class TrainingSamples {
    private final DenseMatrix points;
    /** The power of Minkowski's metric, possibly infinite. */
    private final double p;

    private TrainingSamples(DenseMatrix points, double p) {
        this.points = points;
        this.p = p;
    }

    /** The samples in {@code _fit_X}, with the metric of the attributes. */
    public static TrainingSamples of(EstimatorAttributes f) {
        return of(f, DenseMatrix.of(f, -1, -1, "_fit_X"));
    }

    /** Given samples, with the metric of the attributes. */
    static TrainingSamples of(EstimatorAttributes f, DenseMatrix points) {
        return new TrainingSamples(points, power(f));
    }

    private static double power(EstimatorAttributes f) {
        String metric = f.text("effective_metric_", f.text("metric", "minkowski"));
        return switch (metric) {
            case "euclidean", "l2" -> 2;
            case "manhattan", "l1", "cityblock" -> 1;
            case "chebyshev" -> Double.POSITIVE_INFINITY;
            case "minkowski" -> {
                Object parameters = f.any("effective_metric_params_");
                if (parameters instanceof PyDict d && d.items().getOrDefault("w", PyNone.NONE) != PyNone.NONE) {
                    throw f.unsupported("metric_params");
                }
                yield parameters instanceof PyDict d && d.items().get("p") instanceof Number n
                        ? n.doubleValue()
                        : f.number("p", 2);
            }
            default -> throw f.unsupported(f.has("effective_metric_") ? "effective_metric_" : "metric");
        };
    }

    /** Whether near neighbours weigh more, from the attribute {@code weights}. */
    static boolean byDistance(EstimatorAttributes f) {
        String weights = f.text("weights", "?");
        if (!weights.equals("uniform") && !weights.equals("distance")) {
            throw f.unsupported("weights");
        }
        return weights.equals("distance");
    }

    public int features() {
        return points.columns();
    }

    public int count() {
        return points.rows();
    }

    /** Returns {@code k} after a check that there are as many samples. */
    public int neighbours(EstimatorAttributes f, int k) {
        if (k < 1 || k > count()) {
            throw UnsupportedModel.corrupt(f.path() + " needs " + k + " neighbours of " + count() + " samples");
        }
        return k;
    }

    /** The distance to a sample without its final root, which does not change the order. */
    double reduced(int sample, double[] x, int from) {
        if (p == 2) {
            return points.squaredDistance(sample, x, from);
        }
        double[] all = points.values();
        int columns = points.columns();
        int at = sample * columns;
        double sum = 0;
        for (int i = 0; i < columns; i++) {
            double d = Math.abs(x[from + i] - all[at + i]);
            sum = p == 1 ? sum + d : p == Double.POSITIVE_INFINITY ? Math.max(sum, d) : sum + Math.pow(d, p);
        }
        return sum;
    }

    /** The distance of a reduced one. */
    double root(double reduced) {
        return p == 2 ? Math.sqrt(reduced) : p > 1 && p < 1e300 ? Math.pow(reduced, 1 / p) : reduced;
    }

    /** The reduced distance of a distance. */
    double reduce(double distance) {
        return p == 2 ? distance * distance : p > 1 && p < 1e300 ? Math.pow(distance, p) : distance;
    }

    /**
     * Finds the nearest samples of the row at {@code from} by insertion, as many as {@code found} has elements, the
     * nearest first, and their distances.
     */
    public void nearest(double[] x, int from, int[] found, double[] distances) {
        int k = found.length;
        Arrays.fill(distances, 0, k, Double.POSITIVE_INFINITY);
        for (int i = 0; i < points.rows(); i++) {
            double d = reduced(i, x, from);
            if (d < distances[k - 1]) {
                int at = k - 1;
                while (at > 0 && distances[at - 1] > d) {
                    distances[at] = distances[at - 1];
                    found[at] = found[at - 1];
                    at--;
                }
                distances[at] = d;
                found[at] = i;
            }
        }
        for (int i = 0; i < k; i++) {
            distances[i] = root(distances[i]);
        }
    }

    /** Converts the first {@code count} distances to weights, in place. */
    static void weigh(double[] distances, int count, boolean byDistance) {
        if (!byDistance) {
            Arrays.fill(distances, 0, count, 1);
            return;
        }
        boolean zero = false;
        for (int i = 0; i < count; i++) {
            zero |= distances[i] == 0;
        }
        // Samples at distance 0 count alone: 1 / 0 is not a weight.
        for (int i = 0; i < count; i++) {
            distances[i] = zero ? (distances[i] == 0 ? 1 : 0) : 1 / distances[i];
        }
    }
}
