// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import io.nereid.base.ServingException;
import io.nereid.explain.request.Background;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;

/**
 * LIME: fits a linear model to the model's predictions near a row (Ribeiro, Singh, Guestrin, "Why Should I Trust You?",
 * 2016). Samples are drawn around the row with the standard deviations of the background, and near ones have a greater
 * weight. Stateless.
 */
public final class Lime {
    private static final int SAMPLES = 1000;

    private Lime() {}

    /** Explains every row of a task. */
    public static CompletableFuture<ExplanationTask.Answer> explain(ExplanationTask question) {
        Background background = question.background();
        if (background == null) {
            throw Background.missing("lime", "which show how far each feature spreads");
        }
        int samples = (int) question.options().whole("nsamples", SAMPLES, 10, 1 << 20);
        if (question.features() > ExplanationTask.MOST_FEATURES) {
            throw ServingException.invalidArgument("model has " + question.features() + " features (expected: at most "
                    + ExplanationTask.MOST_FEATURES + " for method lime)");
        }
        question.small((long) samples * (question.features() + question.width()), "nsamples");
        double width = question.options()
                .number("kernel_width", 0.75 * Math.sqrt(question.features()), Double.MIN_NORMAL, 1e9);
        double ridge = question.options().number("ridge", 1, 0, 1e12);
        double[] scale = new double[question.features()];
        for (int f = 0; f < scale.length; f++) {
            Background.Spread spread = background.spread(f);
            scale[f] = spread == null ? 0 : spread.deviation();
        }
        question.budget()
                .check(
                        (long) samples * question.rows().length,
                        "the explanation of " + question.rows().length + " instances by " + samples + " samples");
        List<Object> results = new ArrayList<>();
        CompletableFuture<Void> before = CompletableFuture.completedFuture(null);
        for (int i = 0; i < question.rows().length; i++) {
            Surrogate surrogate = new Surrogate(question, i, scale, samples, width, ridge);
            before = before.thenCompose(done -> surrogate.fit()).thenAccept(results::add);
        }
        return before.thenApply(done -> new ExplanationTask.Answer(
                results, Map.of("algorithm", "lime", "nsamples", samples, "kernel_width", width, "ridge", ridge)));
    }

    /** The linear model of one row. Confined to one stage at a time. */
    private static final class Surrogate {
        private final ExplanationTask question;
        private final int row;
        private final double[] scale;
        private final int samples;
        private final double kernel;
        private final double ridge;

        Surrogate(ExplanationTask question, int row, double[] scale, int samples, double kernel, double ridge) {
            this.question = question;
            this.row = row;
            this.scale = scale;
            this.samples = samples;
            this.kernel = kernel;
            this.ridge = ridge;
        }

        /**
         * Samples rows, predicts them and fits the linear model. Works in units of the standard deviations, so that the
         * ridge penalty treats all features alike.
         */
        CompletableFuture<Map<String, Object>> fit() {
            double[] x = question.rows()[row];
            double[][] off = new double[samples][x.length];
            double[][] answers = new double[samples][];
            SplittableRandom random = question.random(row);
            for (int s = 0; s < samples; s++) {
                for (int f = 0; f < x.length; f++) {
                    // The first sample is the row itself; missing values stay missing.
                    double step = random.nextGaussian();
                    boolean moves = s > 0 && scale[f] > 0 && Double.isFinite(x[f]);
                    double to = moves ? x[f] + step * scale[f] : x[f];
                    to = moves && question.columns().whole(f) ? Math.rint(to) : to;
                    off[s][f] = moves ? (to - x[f]) / scale[f] : 0;
                }
            }
            return question.model()
                    .ask(
                            samples,
                            (i, to) -> {
                                for (int f = 0; f < to.length; f++) {
                                    double d = off[(int) i][f];
                                    to[f] = d == 0 ? x[f] : x[f] + d * scale[f];
                                }
                            },
                            (i, values, at, width) ->
                                    answers[(int) i] = java.util.Arrays.copyOfRange(values, at, at + width))
                    .thenApply(done -> solve(off, answers));
        }

        private Map<String, Object> solve(double[][] off, double[][] answers) {
            int features = question.features();
            int outputs = question.width();
            double[] weights = new double[samples];
            double[] middle = new double[features];
            double[] mean = new double[outputs];
            double sum = 0;
            for (int s = 0; s < samples; s++) {
                double distance = 0;
                for (double d : off[s]) {
                    distance += d * d;
                }
                weights[s] = Math.exp(-distance / (2 * kernel * kernel));
                sum += weights[s];
                for (int f = 0; f < features; f++) {
                    middle[f] += weights[s] * off[s][f];
                }
                for (int o = 0; o < outputs; o++) {
                    mean[o] += weights[s] * answers[s][o];
                }
            }
            LeastSquares system = new LeastSquares(features, outputs);
            double[] line = new double[features];
            double[] expected = new double[outputs];
            for (int s = 0; s < samples; s++) {
                if (s % 256 == 0) {
                    question.budget().alive();
                }
                for (int f = 0; f < features; f++) {
                    line[f] = off[s][f] - middle[f] / sum;
                }
                for (int o = 0; o < outputs; o++) {
                    expected[o] = answers[s][o] - mean[o] / sum;
                }
                system.add(line, weights[s], expected);
            }
            for (int f = 0; f < features; f++) {
                system.penalise(f, ridge);
            }
            return result(off, answers, weights, sum, middle, mean, system.solve());
        }

        private Map<String, Object> result(
                double[][] off,
                double[][] answers,
                double[] weights,
                double sum,
                double[] middle,
                double[] mean,
                double[][] found) {
            int features = question.features();
            int outputs = question.width();
            double[] x = question.rows()[row];
            double[][] coefficients = new double[outputs][features];
            double[] intercepts = new double[outputs];
            double[] local = new double[outputs];
            double[] fit = new double[outputs];
            for (int o = 0; o < outputs; o++) {
                double at = mean[o] / sum;
                for (int f = 0; f < features; f++) {
                    at -= found[o][f] * middle[f] / sum;
                }
                double intercept = at;
                for (int f = 0; f < features; f++) {
                    coefficients[o][f] = scale[f] > 0 ? found[o][f] / scale[f] : 0;
                    intercept -= Double.isFinite(x[f]) ? coefficients[o][f] * x[f] : 0;
                }
                double residual = 0;
                double total = 0;
                for (int s = 0; s < weights.length; s++) {
                    double guess = at;
                    for (int f = 0; f < features; f++) {
                        guess += found[o][f] * off[s][f];
                    }
                    residual += weights[s] * (answers[s][o] - guess) * (answers[s][o] - guess);
                    total += weights[s] * (answers[s][o] - mean[o] / sum) * (answers[s][o] - mean[o] / sum);
                }
                intercepts[o] = intercept;
                local[o] = at;
                fit[o] = total == 0 ? 1 : 1 - residual / total;
            }
            Map<String, Object> result = new LinkedHashMap<>();
            double[] prediction = question.predictions()[row];
            int target = question.target(prediction);
            if (target >= 0 || outputs == 1) {
                int at = Math.max(0, target);
                if (target >= 0) {
                    result.put("target", target);
                }
                result.put("coefficients", coefficients[at]);
                result.put("intercept", intercepts[at]);
                result.put("r2", fit[at]);
                result.put("local_prediction", local[at]);
            } else {
                result.put("coefficients", coefficients);
                result.put("intercept", intercepts);
                result.put("r2", fit);
                result.put("local_prediction", local);
            }
            result.put("prediction", ShapValues.single(prediction));
            result.put("feature_names", question.columns().names());
            return result;
        }
    }
}
