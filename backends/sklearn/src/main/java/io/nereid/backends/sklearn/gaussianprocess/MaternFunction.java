// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.gaussianprocess;

/**
 * The Matern covariance as a function of the squared scaled distance (Rasmussen and Williams, Gaussian Processes for
 * Machine Learning, 4.14). The modified Bessel function of the second kind is its integral representation (Abramowitz and
 * Stegun 9.6.24) by the trapezoidal rule, which converges exponentially because the integrand falls doubly exponentially.
 * Stateless.
 */
final class MaternFunction {
    private static final double STEP = 1.0 / 32;
    /** From here on exp is zero. */
    private static final double LEAST_EXPONENT = -745;

    private MaternFunction() {}

    static CovarianceReader.OfSquare of(double nu) {
        if (nu == 0.5) {
            return d -> Math.exp(-Math.sqrt(d));
        }
        if (nu == 1.5) {
            return d -> {
                double k = Math.sqrt(3 * d);
                return (1 + k) * Math.exp(-k);
            };
        }
        if (nu == 2.5) {
            return d -> {
                double k = Math.sqrt(5 * d);
                return (1 + k + k * k / 3) * Math.exp(-k);
            };
        }
        if (nu == Double.POSITIVE_INFINITY) {
            return d -> Math.exp(-0.5 * d);
        }
        double scale = Math.log(2) * (1 - nu) - logGamma(nu);
        return d -> {
            if (d == 0) {
                return 1;
            }
            double z = Math.sqrt(2 * nu * d);
            return bessel(nu, z, scale + nu * Math.log(z));
        };
    }

    /** K of order {@code nu} at {@code z}, times the exponential of {@code scale}. */
    private static double bessel(double nu, double z, double scale) {
        double sum = 0.5 * Math.exp(scale - z);
        for (int i = 1; ; i++) {
            double t = i * STEP;
            double exponent = scale - z * Math.cosh(t) + nu * t;
            sum += 0.5 * (Math.exp(exponent) + Math.exp(exponent - 2 * nu * t));
            // The exponent falls from where its derivative is negative; what is not a number ends here too.
            if (!(exponent >= LEAST_EXPONENT || z * Math.sinh(t) <= nu)) {
                return sum * STEP;
            }
        }
    }

    /** The logarithm of the gamma function: the recurrence to where Stirling's series converges (6.1.40). */
    static double logGamma(double given) {
        double x = given;
        double product = 0;
        while (x < 16) {
            product -= Math.log(x);
            x++;
        }
        double y = 1 / (x * x);
        double series = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188)))) / x;
        return product + (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
    }
}
