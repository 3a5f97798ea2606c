// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.base.ServingException;
import java.util.Locale;

/**
 * A kernel function of {@code sklearn.metrics.pairwise} between rows and fixed samples. Immutable.
 */
public final class SampleKernel {
    private enum Kind {
        LINEAR,
        POLYNOMIAL,
        RBF,
        LAPLACIAN,
        SIGMOID,
        COSINE,
        CHI2,
        ADDITIVE_CHI2,
        PRECOMPUTED
    }

    private final Kind kind;
    private final DenseMatrix samples;
    private final double gamma;
    private final double coef0;
    private final double degree;
    /** By sample, its length; for the cosine. */
    private final double[] lengths;

    private SampleKernel(Kind kind, DenseMatrix samples, double gamma, double coef0, double degree) {
        this.kind = kind;
        this.samples = samples;
        this.gamma = gamma;
        this.coef0 = coef0;
        this.degree = degree;
        lengths = new double[kind == Kind.COSINE ? samples.rows() : 0];
        for (int i = 0; i < lengths.length; i++) {
            lengths[i] = length(samples.values(), i * samples.columns(), samples.columns());
        }
    }

    /** The kernel of the parameters {@code kernel}, {@code gamma}, {@code coef0} and {@code degree}. */
    public static SampleKernel of(EstimatorAttributes f, DenseMatrix samples) {
        return of(f, "kernel", samples, f.number("gamma", Double.NaN));
    }

    /**
     * A kernel.
     *
     * @param parameter the name of the parameter with the kernel's name
     * @param gamma NaN for the default: 1 for chi2, otherwise one over the number of columns
     */
    public static SampleKernel of(EstimatorAttributes f, String parameter, DenseMatrix samples, double gamma) {
        Kind found = null;
        for (Kind k : Kind.values()) {
            found = k.name().toLowerCase(Locale.ROOT).equals(f.any(parameter)) ? k : found;
        }
        Kind kind = found == null && "poly".equals(f.any(parameter)) ? Kind.POLYNOMIAL : found;
        if (kind == null || (f.has("kernel_params") && !(f.any("kernel_params") instanceof String))) {
            throw f.unsupported(kind == null ? parameter : "kernel_params");
        }
        double scale = Double.isNaN(gamma) ? (kind == Kind.CHI2 ? 1 : 1.0 / samples.columns()) : gamma;
        return new SampleKernel(kind, samples, scale, f.number("coef0", 1), f.number("degree", 3));
    }

    /** The number of samples, which is the number of values of {@link #values}. */
    public int count() {
        return samples.rows();
    }

    /** The number of columns of a row: as many as there are samples when the kernel is computed by the client. */
    public int features() {
        return kind == Kind.PRECOMPUTED ? samples.rows() : samples.columns();
    }

    private static double length(double[] x, int from, int columns) {
        double sum = 0;
        for (int i = 0; i < columns; i++) {
            sum += x[from + i] * x[from + i];
        }
        double length = Math.sqrt(sum);
        return length == 0 ? 1 : length;
    }

    /**
     * Writes the kernel value of the row at {@code from} with each sample to {@code to}.
     *
     * @throws ServingException INVALID_ARGUMENT for a negative number where the kernel compares frequencies
     */
    public void values(double[] x, int from, double[] to) {
        if (kind == Kind.CHI2 || kind == Kind.ADDITIVE_CHI2) {
            for (int i = from; i < from + samples.columns(); i++) {
                if (x[i] < 0) {
                    throw ServingException.invalidArgument(
                            "the chi-squared kernel was given " + x[i] + " (expected: numbers of at least 0)");
                }
            }
        }
        double own = kind == Kind.COSINE ? length(x, from, samples.columns()) : 1;
        for (int i = 0; i < count(); i++) {
            to[i] = kind == Kind.COSINE ? samples.dot(i, x, from) / (own * lengths[i]) : value(x, from, i);
        }
    }

    /** The kernel value of the row at {@code from} with one sample. */
    public double value(double[] x, int from, int sample) {
        return switch (kind) {
            case PRECOMPUTED -> x[from + sample];
            case LINEAR -> samples.dot(sample, x, from);
            case COSINE -> samples.dot(sample, x, from) / (length(x, from, samples.columns()) * lengths[sample]);
            case RBF -> Math.exp(-gamma * samples.squaredDistance(sample, x, from));
            case LAPLACIAN -> Math.exp(-gamma * blocks(x, from, sample));
            case CHI2 -> Math.exp(gamma * chiSquared(x, from, sample));
            case ADDITIVE_CHI2 -> chiSquared(x, from, sample);
            case POLYNOMIAL -> Math.pow(gamma * samples.dot(sample, x, from) + coef0, degree);
            case SIGMOID -> Math.tanh(gamma * samples.dot(sample, x, from) + coef0);
        };
    }

    private double blocks(double[] x, int from, int sample) {
        double[] all = samples.values();
        int at = sample * samples.columns();
        double sum = 0;
        for (int i = 0; i < samples.columns(); i++) {
            sum += Math.abs(x[from + i] - all[at + i]);
        }
        return sum;
    }

    private double chiSquared(double[] x, int from, int sample) {
        double[] all = samples.values();
        int at = sample * samples.columns();
        double sum = 0;
        for (int i = 0; i < samples.columns(); i++) {
            double difference = x[from + i] - all[at + i];
            double total = x[from + i] + all[at + i];
            sum -= total == 0 ? 0 : difference * difference / total;
        }
        return sum;
    }
}
