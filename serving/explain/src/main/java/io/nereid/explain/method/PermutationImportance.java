// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import io.nereid.base.ServingException;
import io.nereid.explain.request.ExplainOptions;
import io.nereid.explain.request.ScoringMetric;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;

/**
 * Permutation importance: how much a model's score drops when the values of one feature are shuffled among the rows
 * (Breiman 2001; Fisher, Rudin, Dominici 2019). It explains the model rather than single rows, and needs the true
 * values of the rows. Stateless.
 */
public final class PermutationImportance {
    private PermutationImportance() {}

    /** Explains the model of a task. */
    public static CompletableFuture<ExplanationTask.Answer> explain(ExplanationTask question) {
        int rows = question.rows().length;
        if (!(question.options().get("targets") instanceof double[] truth)) {
            throw ServingException.invalidArgument(
                    "method 'permutation' needs parameter 'targets', the true value of each instance (expected: a list"
                            + " of "
                            + rows + " numbers)",
                    "send \"parameters\": {\"method\": \"permutation\", \"targets\": […]}");
        }
        if (truth.length != rows || rows < 2 || !Arrays.stream(truth).allMatch(Double::isFinite)) {
            throw ServingException.invalidArgument("parameter 'targets' has " + truth.length + " values for " + rows
                    + " instances (expected: one number for each, and at least 2)");
        }
        int repeats = (int) question.options().whole("repeats", 5, 1, 1000);
        ScoringMetric metric = ScoringMetric.of(
                question.options().word("metric", question.width() > 1 ? "accuracy" : "r2", ScoringMetric.NAMES));
        if ("top".equals(question.options().get("target"))) {
            throw ExplainOptions.wrong("target", "top", "a number, for which number of a prediction is scored");
        }
        int target = question.target(question.predictions()[0]);
        int features = question.features();
        question.budget()
                .check(
                        (long) features * repeats * rows,
                        "the permutation of " + features + " features, " + repeats + " times over " + rows + " rows,");
        double baseline = metric.score(question.predictions(), truth, target);
        double[][] losses = new double[features][repeats];
        CompletableFuture<Void> before = CompletableFuture.completedFuture(null);
        for (int round = 0; round < features * repeats; round++) {
            int feature = round / repeats;
            int repeat = round % repeats;
            before = before.thenCompose(done -> {
                double[][] answers = new double[rows][];
                int[] order = shuffled(rows, question.random(feature * repeats + repeat));
                return question.model()
                        .ask(
                                rows,
                                (i, to) -> {
                                    System.arraycopy(question.rows()[(int) i], 0, to, 0, to.length);
                                    to[feature] = question.rows()[order[(int) i]][feature];
                                },
                                (i, values, at, width) -> answers[(int) i] = Arrays.copyOfRange(values, at, at + width))
                        .thenRun(() ->
                                losses[feature][repeat] = metric.loss(baseline, metric.score(answers, truth, target)));
            });
        }
        return before.thenApply(done -> result(question, metric, baseline, losses, repeats));
    }

    private static int[] shuffled(int size, SplittableRandom random) {
        int[] order = new int[size];
        for (int i = 0; i < size; i++) {
            int other = random.nextInt(i + 1);
            order[i] = order[other];
            order[other] = i;
        }
        return order;
    }

    private static ExplanationTask.Answer result(
            ExplanationTask question, ScoringMetric metric, double baseline, double[][] losses, int repeats) {
        double[] means = new double[losses.length];
        double[] deviations = new double[losses.length];
        for (int f = 0; f < losses.length; f++) {
            double mean = Arrays.stream(losses[f]).average().orElse(0);
            means[f] = mean;
            deviations[f] = Math.sqrt(
                    Arrays.stream(losses[f]).map(l -> (l - mean) * (l - mean)).sum() / repeats);
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("importances", means);
        result.put("importances_std", deviations);
        result.put("baseline_score", baseline);
        result.put("metric", metric.name().toLowerCase(java.util.Locale.ROOT));
        result.put("repeats", repeats);
        result.put("feature_names", question.columns().names());
        return new ExplanationTask.Answer(List.of(result), Map.of("algorithm", "permutation_importance"));
    }
}
