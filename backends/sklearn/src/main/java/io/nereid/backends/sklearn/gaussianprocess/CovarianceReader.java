// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.gaussianprocess;

import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.kernel.SampleKernel;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;

/** Reads the kernels of {@code sklearn.gaussian_process.kernels}, alone and composed of each other. Stateless. */
final class CovarianceReader {
    /** Kernels in each other. */
    private static final int MAX_DEPTH = 24;

    private CovarianceReader() {}

    /** The kernel in {@code kernel_} between rows and training rows. */
    static Covariance of(EstimatorAttributes f, DenseMatrix training) {
        return read(f, "kernel_", training, 0);
    }

    private static Covariance read(EstimatorAttributes owner, String name, DenseMatrix training, int depth) {
        int columns = training.columns();
        EstimatorAttributes f = new EstimatorAttributes(owner.object(name));
        if (depth > MAX_DEPTH) {
            throw UnsupportedModel.corrupt(
                    "kernels are nested too deeply (expected: at most " + MAX_DEPTH + " in each other)");
        }
        if (!f.object().type().isOf("sklearn.gaussian_process")) {
            throw UnsupportedModel.unsupported("kernel " + f.path() + " is not supported");
        }
        return switch (f.type()) {
            case "Sum", "Product" -> {
                Covariance a = read(f, "k1", training, depth + 1);
                Covariance b = read(f, "k2", training, depth + 1);
                yield new Combined(a, b, f.type().equals("Sum"));
            }
            case "Exponentiation" -> new Power(read(f, "kernel", training, depth + 1), f.number("exponent"));
            case "ConstantKernel" -> new Constant(f.number("constant_value"), f.number("constant_value"));
            case "WhiteKernel" -> new Constant(0, f.number("noise_level"));
            case "DotProduct" -> new DotProduct(f.number("sigma_0") * f.number("sigma_0"));
            case "RBF" -> new Scaled(scales(f, columns), d -> Math.exp(-0.5 * d));
            case "Matern" -> {
                double nu = f.number("nu");
                if (!(nu > 0 && (nu <= 1000 || nu == Double.POSITIVE_INFINITY))) {
                    throw f.unsupported("nu");
                }
                yield new Scaled(scales(f, columns), MaternFunction.of(nu));
            }
            case "RationalQuadratic" -> {
                double alpha = f.number("alpha");
                yield new Scaled(scales(f, columns), d -> Math.pow(1 + d / (2 * alpha), -alpha));
            }
            case "ExpSineSquared" -> {
                double[] one = new double[columns];
                Arrays.fill(one, 1);
                double length = f.number("length_scale");
                double period = f.number("periodicity");
                yield new Scaled(one, d -> {
                    double s = Math.sin(Math.PI * Math.sqrt(d) / period) / length;
                    return Math.exp(-2 * s * s);
                });
            }
            case "PairwiseKernel" -> {
                if ("precomputed".equals(f.any("metric"))) {
                    throw f.unsupported("metric");
                }
                if (f.any("pairwise_kernels_kwargs") instanceof PyDict d
                        && !d.items().isEmpty()) {
                    throw f.unsupported("pairwise_kernels_kwargs");
                }
                yield new Pairwise(f, Pairwise.kernel(f, training));
            }
            default -> throw UnsupportedModel.unsupported("kernel " + f.path() + " is not supported");
        };
    }

    /** By column, one over its length scale. */
    private static double[] scales(EstimatorAttributes f, int columns) {
        double[] given = f.doubles("length_scale");
        if (given.length != 1 && given.length != columns) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has " + given.length + " length scales (expected: 1 or " + columns + ")");
        }
        double[] scales = new double[columns];
        for (int i = 0; i < columns; i++) {
            scales[i] = 1 / given[given.length == 1 ? 0 : i];
        }
        return scales;
    }

    /** A function of a squared distance. */
    interface OfSquare {
        double at(double squared);
    }

    /** A stationary kernel: a function of the distance after the columns are scaled. Immutable. */
    private record Scaled(double[] scales, OfSquare function) implements Covariance {
        @Override
        public double of(double[] x, int from, DenseMatrix training, int row) {
            double[] all = training.values();
            int at = row * scales.length;
            double sum = 0;
            for (int i = 0; i < scales.length; i++) {
                double d = (x[from + i] - all[at + i]) * scales[i];
                sum += d * d;
            }
            return function.at(sum);
        }

        @Override
        public double variance(double[] x, int from, int columns) {
            return 1;
        }
    }

    /** A value for different rows, and one for the same. Immutable. */
    private record Constant(double value, double own) implements Covariance {
        @Override
        public double of(double[] x, int from, DenseMatrix training, int row) {
            return value;
        }

        @Override
        public double variance(double[] x, int from, int columns) {
            return own;
        }
    }

    private record DotProduct(double added) implements Covariance {
        @Override
        public double of(double[] x, int from, DenseMatrix training, int row) {
            return training.dot(row, x, from) + added;
        }

        @Override
        public double variance(double[] x, int from, int columns) {
            double sum = 0;
            for (int i = from; i < from + columns; i++) {
                sum += x[i] * x[i];
            }
            return sum + added;
        }
    }

    private record Combined(Covariance a, Covariance b, boolean sum) implements Covariance {
        @Override
        public double of(double[] x, int from, DenseMatrix training, int row) {
            double left = a.of(x, from, training, row);
            double right = b.of(x, from, training, row);
            return sum ? left + right : left * right;
        }

        @Override
        public double variance(double[] x, int from, int columns) {
            double left = a.variance(x, from, columns);
            double right = b.variance(x, from, columns);
            return sum ? left + right : left * right;
        }
    }

    private record Power(Covariance base, double exponent) implements Covariance {
        @Override
        public double of(double[] x, int from, DenseMatrix training, int row) {
            return Math.pow(base.of(x, from, training, row), exponent);
        }

        @Override
        public double variance(double[] x, int from, int columns) {
            return Math.pow(base.variance(x, from, columns), exponent);
        }
    }

    /** A kernel of {@code sklearn.metrics.pairwise} with the training rows. Immutable. */
    private record Pairwise(EstimatorAttributes attributes, SampleKernel kernel) implements Covariance {
        static SampleKernel kernel(EstimatorAttributes f, DenseMatrix rows) {
            return SampleKernel.of(f, "metric", rows, f.number("gamma", 1));
        }

        @Override
        public double of(double[] x, int from, DenseMatrix training, int row) {
            return kernel.value(x, from, row);
        }

        @Override
        public double variance(double[] x, int from, int columns) {
            double[] own = new double[columns];
            System.arraycopy(x, from, own, 0, columns);
            return kernel(attributes, DenseMatrix.over(1, columns, own)).value(x, from, 0);
        }
    }
}
