// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neighbors;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PyTuple;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * {@code KernelDensity}: the logarithm of the density at a row, a sum of kernels around the training rows. The sum is exact,
 * also where the model allows an error. Immutable.
 */
public final class KernelDensity extends Estimator {
    private enum Kernel {
        GAUSSIAN,
        TOPHAT,
        EPANECHNIKOV,
        EXPONENTIAL,
        LINEAR,
        COSINE
    }

    private final TrainingSamples samples;
    /** By training row, the logarithm of its weight. */
    private final double[] weights;

    private final Kernel kernel;
    private final double width;
    private final double scale;

    private KernelDensity(
            EstimatorAttributes f, TrainingSamples samples, double[] weights, Kernel kernel, double width) {
        super(f.type(), samples.features());
        this.samples = samples;
        this.weights = weights;
        this.kernel = kernel;
        this.width = width;
        double total = 0;
        for (double w : weights) {
            total += w;
        }
        for (int i = 0; i < weights.length; i++) {
            weights[i] = Math.log(weights[i]);
        }
        this.scale = -norm(kernel, samples.features()) - samples.features() * Math.log(width) - Math.log(total);
    }

    public static KernelDensity of(EstimatorAttributes f) {
        if (!(f.object("tree_").state() instanceof PyTuple tree)
                || tree.items().size() < 2
                || !(tree.get(0) instanceof NdArray data)
                || data.rank() != 2
                || data.count() == 0) {
            throw UnsupportedModel.unsupported(f.path() + " has a tree without training rows");
        }
        double[] weights = new double[data.dim(0)];
        Arrays.fill(weights, 1);
        if (tree.get(tree.items().size() - 1) instanceof NdArray given
                && given.count() == weights.length
                && given.rank() == 1) {
            weights = given.doubles();
        }
        Kernel kernel = null;
        for (Kernel k : Kernel.values()) {
            kernel = k.name().toLowerCase(Locale.ROOT).equals(f.any("kernel")) ? k : kernel;
        }
        double width = f.number("bandwidth_", f.number("bandwidth", 1));
        if (kernel == null || !(width > 0)) {
            throw f.unsupported(kernel == null ? "kernel" : "bandwidth");
        }
        DenseMatrix points = DenseMatrix.over(data.dim(0), data.dim(1), data.doubles());
        return new KernelDensity(f, TrainingSamples.of(f, points), weights, kernel, width);
    }

    /** The logarithm of the integral of a kernel of width one over all of space. */
    private static double norm(Kernel kernel, int d) {
        return switch (kernel) {
            case GAUSSIAN -> 0.5 * d * Math.log(2 * Math.PI);
            case TOPHAT -> volume(d);
            case EPANECHNIKOV -> volume(d) + Math.log(2.0 / (d + 2));
            case EXPONENTIAL -> surface(d - 1) + logFactorial(d - 1);
            case LINEAR -> volume(d) - Math.log(d + 1.0);
            case COSINE -> {
                // Integrated by parts, two powers of the radius at a time.
                double factor = 0;
                double part = 2 / Math.PI;
                for (int k = 1; k <= d; k += 2) {
                    factor += part;
                    part *= -(double) (d - k) * (d - k - 1) * 4 / (Math.PI * Math.PI);
                }
                yield Math.log(factor) + surface(d - 1);
            }
        };
    }

    /** The logarithm of the volume of the unit ball. */
    private static double volume(int n) {
        return 0.5 * n * Math.log(Math.PI) - logGammaOfHalf(n + 2);
    }

    /** The logarithm of the surface of the unit ball of one dimension more. */
    private static double surface(int n) {
        return Math.log(2 * Math.PI) + volume(n - 1);
    }

    private static double logFactorial(int n) {
        double sum = 0;
        for (int i = 2; i <= n; i++) {
            sum += Math.log(i);
        }
        return sum;
    }

    /** The logarithm of the gamma function at half of a whole number. */
    private static double logGammaOfHalf(int twice) {
        double sum = twice % 2 == 0 ? 0 : 0.5 * Math.log(Math.PI);
        for (int i = twice - 2; i > 0; i -= 2) {
            sum += Math.log(i / 2.0);
        }
        return sum;
    }

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.SCORE_SAMPLES);
    }

    @Override
    public int width(PredictMethod method) {
        return 0;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        double[] x = table.finite(type());
        double[] scores = new double[table.rows()];
        double[] logs = new double[samples.count()];
        for (int r = 0; r < scores.length; r++) {
            double most = Double.NEGATIVE_INFINITY;
            for (int i = 0; i < logs.length; i++) {
                logs[i] = weights[i] + log(samples.root(samples.reduced(i, x, r * table.columns())));
                most = Math.max(most, logs[i]);
            }
            double sum = 0;
            for (double v : logs) {
                sum += most == Double.NEGATIVE_INFINITY ? 0 : Math.exp(v - most);
            }
            scores[r] = scale + (sum == 0 ? Double.NEGATIVE_INFINITY : most + Math.log(sum));
        }
        return DataTable.column(scores);
    }

    private double log(double distance) {
        double d = distance / width;
        return switch (kernel) {
            case GAUSSIAN -> -0.5 * d * d;
            case EXPONENTIAL -> -d;
            default ->
                d >= 1
                        ? Double.NEGATIVE_INFINITY
                        : switch (kernel) {
                            case EPANECHNIKOV -> Math.log(1 - d * d);
                            case LINEAR -> Math.log(1 - d);
                            case COSINE -> Math.log(Math.cos(0.5 * Math.PI * d));
                            default -> 0;
                        };
        };
    }
}
