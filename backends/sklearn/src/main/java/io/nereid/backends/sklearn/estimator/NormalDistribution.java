// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

/**
 * The standard normal distribution: its distribution function and quantiles, to about 15 digits. The complementary error
 * function is computed by the series of Abramowitz and Stegun 7.1.6 near zero and by the continued fraction 7.1.14 in
 * the tails; a quantile starts from their approximation 26.2.23 and is improved by Halley's method. Stateless.
 */
public final class NormalDistribution {
    private static final double SQRT_2 = Math.sqrt(2);
    private static final double SQRT_PI = Math.sqrt(Math.PI);

    private NormalDistribution() {}

    /** The probability of a value of at most {@code x}. */
    public static double cdf(double x) {
        return 0.5 * erfc(-x / SQRT_2);
    }

    /** The value that a variable stays below with this probability; infinite for 0 and 1, NaN outside of them. */
    public static double quantile(double p) {
        if (!(p > 0 && p < 1)) {
            return p == 0 ? Double.NEGATIVE_INFINITY : p == 1 ? Double.POSITIVE_INFINITY : Double.NaN;
        }
        // In the lower tail probabilities keep their relative precision.
        return p > 0.5 ? -lower(1 - p) : lower(p);
    }

    private static double lower(double p) {
        double t = Math.sqrt(-2 * Math.log(p));
        double x = -(t
                - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
        for (int i = 0; i < 4; i++) {
            double density = Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
            double step = (cdf(x) - p) / density;
            double next = x - step / (1 + x * step / 2);
            if (next == x) {
                break;
            }
            x = next;
        }
        return x;
    }

    private static double erfc(double x) {
        if (x < 0) {
            return 2 - erfc(-x);
        }
        if (Double.isNaN(x)) {
            return x;
        }
        if (x < 2.5) {
            // All terms are positive, so that nothing cancels.
            double term = x;
            double sum = x;
            for (int n = 1; term > sum * 1e-17; n++) {
                term *= 2 * x * x / (2 * n + 1);
                sum += term;
            }
            return 1 - 2 / SQRT_PI * Math.exp(-x * x) * sum;
        }
        if (x > 40) {
            return 0;
        }
        double fraction = x;
        for (int n = 120; n > 0; n--) {
            fraction = x + n / 2.0 / fraction;
        }
        return Math.exp(-x * x) / (SQRT_PI * fraction);
    }
}
