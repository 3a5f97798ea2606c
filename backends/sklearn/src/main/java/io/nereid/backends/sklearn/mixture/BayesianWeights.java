// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.mixture;

import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;
import java.util.List;

/**
 * What a {@code BayesianGaussianMixture} adds to the logarithm of each component's density: the expectation of the
 * logarithm of its weight and of its precision's determinant. Stateless.
 */
final class BayesianWeights {
    private BayesianWeights() {}

    /** The values by component. */
    static double[] of(EstimatorAttributes f, int components, int features) {
        double[] added = logWeights(f, components);
        double[] degrees = spread(f, components, "degrees_of_freedom_");
        double[] precision = f.doubles(components, "mean_precision_");
        for (int k = 0; k < components; k++) {
            double lambda = features * Math.log(2);
            for (int i = 0; i < features; i++) {
                lambda += digamma(0.5 * (degrees[k] - i));
            }
            added[k] += 0.5 * (lambda - features / precision[k]) - 0.5 * features * Math.log(degrees[k]);
        }
        return added;
    }

    /** The values by component; the only value where all components share their covariance. */
    private static double[] spread(EstimatorAttributes f, int components, String name) {
        double[] values = f.doubles(name);
        if (values.length != 1) {
            return f.doubles(components, name);
        }
        double[] all = new double[components];
        Arrays.fill(all, values[0]);
        return all;
    }

    private static double[] logWeights(EstimatorAttributes f, int components) {
        String kind = f.text("weight_concentration_prior_type", "dirichlet_process");
        double[] logs = new double[components];
        if (kind.equals("dirichlet_distribution")) {
            double[] concentration = f.doubles(components, "weight_concentration_");
            double sum = 0;
            for (double c : concentration) {
                sum += c;
            }
            for (int k = 0; k < components; k++) {
                logs[k] = digamma(concentration[k]) - digamma(sum);
            }
            return logs;
        }
        if (!kind.equals("dirichlet_process")) {
            throw f.unsupported("weight_concentration_prior_type");
        }
        List<Object> pair = f.list("weight_concentration_");
        if (pair.size() != 2
                || !(pair.get(0) instanceof NdArray first)
                || !(pair.get(1) instanceof NdArray second)
                || first.doubles().length != components
                || second.doubles().length != components) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has no two arrays of " + components + " values in 'weight_concentration_'");
        }
        // The lengths that remain of a stick that is broken once for each component.
        double[] a = first.doubles();
        double[] b = second.doubles();
        double rest = 0;
        for (int k = 0; k < components; k++) {
            double both = digamma(a[k] + b[k]);
            logs[k] = digamma(a[k]) - both + rest;
            rest += digamma(b[k]) - both;
        }
        return logs;
    }

    /**
     * The logarithmic derivative of the gamma function for positive numbers: the recurrence to where the asymptotic series
     * converges (Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3.5 and 6.3.18).
     */
    static double digamma(double given) {
        double x = given;
        double sum = 0;
        while (x < 12) {
            sum -= 1 / x;
            x++;
        }
        double y = 1 / (x * x);
        double series = y
                * (1.0 / 12
                        - y
                                * (1.0 / 120
                                        - y
                                                * (1.0 / 252
                                                        - y
                                                                * (1.0 / 240
                                                                        - y
                                                                                * (1.0 / 132
                                                                                        - y
                                                                                                * (691.0 / 32760
                                                                                                        - y / 12))))));
        return sum + Math.log(x) - 0.5 / x - series;
    }
}
