// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import io.nereid.base.ServingException;
import io.nereid.explain.model.PredictionBudget;
import io.nereid.explain.request.Background;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Kernel SHAP, Shapley values of any model: features outside a coalition take the values of the background rows in
 * turn, and the predictions are averaged (Lundberg, Lee 2017). With up to {@link #EXACT} features that differ from the
 * background, all coalitions are evaluated, which is exact. With more, {@code nsamples} coalitions are, and the values
 * are the weighted least-squares fit that adds up to the prediction. Stateless.
 */
public final class KernelShap {
    /** Most features of which all coalitions are evaluated. */
    static final int EXACT = 11;

    private KernelShap() {}

    /** Explains every row of a task. */
    public static CompletableFuture<ExplanationTask.Answer> explain(ExplanationTask question) {
        Background background = question.background();
        if (background == null) {
            throw Background.missing("shap", "as this model has no SHAP values of its own");
        }
        boolean logit = question.options()
                .word("link", "identity", List.of("identity", "logit"))
                .equals("logit");
        List<Instance> instances = new ArrayList<>();
        long predictions = 0;
        for (int i = 0; i < question.rows().length; i++) {
            Instance instance = new Instance(question, background, i, logit);
            instances.add(instance);
            predictions += instance.predictions();
        }
        long all = predictions + background.rows().length;
        question.budget()
                .check(
                        all,
                        "the explanation of " + instances.size() + " instances by " + background.rows().length
                                + " background rows");
        double[] empty = new double[question.width()];
        int count = background.rows().length;
        CompletableFuture<Void> before = question.model()
                .ask(
                        count,
                        (i, to) -> System.arraycopy(background.rows()[(int) i], 0, to, 0, to.length),
                        (i, values, at, width) -> {
                            for (int o = 0; o < width; o++) {
                                empty[o] += values[at + o] / count;
                            }
                        })
                .thenRun(() -> link(empty, logit));
        for (Instance instance : instances) {
            before = before.thenCompose(done -> instance.run(empty));
        }
        return before.thenApply(done -> {
            boolean exact = instances.stream().allMatch(i -> i.exact);
            Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("algorithm", exact ? "kernel_shap_exact" : "kernel_shap_sampled");
            facts.put("link", logit ? "logit" : "identity");
            return new ExplanationTask.Answer(
                    instances.stream().map(i -> i.result).toList(), facts);
        });
    }

    private static void link(double[] values, boolean logit) {
        for (int i = 0; i < values.length && logit; i++) {
            if (!(values[i] >= 0 && values[i] <= 1)) {
                throw ServingException.invalidArgument(
                        "link 'logit' needs predictions from 0 to 1, and there is " + values[i], "use link identity");
            }
            double p = Math.min(1 - 1e-15, Math.max(1e-15, values[i]));
            values[i] = Math.log(p / (1 - p));
        }
    }

    /** One row and its explanation. Confined to one stage at a time. */
    private static final class Instance {
        private final ExplanationTask question;
        private final double[][] background;
        private final int row;
        private final boolean logit;
        /** Features that differ from some background row; the others contribute nothing. */
        private final int[] varying;

        private final boolean exact;
        private final int sets;
        private final Map<String, Object> result = new LinkedHashMap<>();

        Instance(ExplanationTask question, Background background, int row, boolean logit) {
            this.question = question;
            this.background = background.rows();
            this.row = row;
            this.logit = logit;
            double[] x = question.rows()[row];
            int[] found = new int[x.length];
            int count = 0;
            for (int f = 0; f < x.length; f++) {
                for (double[] other : this.background) {
                    // Two missing values are equal. Adding 0.0 makes -0.0 equal to 0.0.
                    if (Double.compare(other[f] + 0.0, x[f] + 0.0) != 0) {
                        found[count++] = f;
                        break;
                    }
                }
            }
            varying = Arrays.copyOf(found, count);
            if (count > ExplanationTask.MOST_FEATURES) {
                throw ServingException.invalidArgument(
                        count + " features differ from the background (expected: at most "
                                + ExplanationTask.MOST_FEATURES
                                + " for SHAP values of a model without its own)",
                        "use a background of which fewer features differ");
            }
            long samples = question.options().whole("nsamples", 0, 0, 1 << 20);
            exact = count <= EXACT && (samples == 0 || samples >= (1L << count) - 2);
            int some = samples == 0 ? 2 * count + 2048 : (int) samples;
            if (!exact && some < 2 * count) {
                throw ServingException.invalidArgument("parameter 'nsamples' is " + some + " (expected: at least "
                        + 2 * count + ", twice the features that differ from the background)");
            }
            sets = exact ? Math.max(0, (1 << count) - 2) : some;
            question.small((long) sets * Math.max(question.width(), count), "nsamples");
        }

        long predictions() {
            return (long) sets * background.length;
        }

        CompletableFuture<Void> run(double[] empty) {
            double[] x = question.rows()[row];
            int width = question.width();
            int count = varying.length;
            Coalitions coalitions = exact ? Coalitions.all(count) : Coalitions.some(count, sets, question.random(row));
            double[][] values = new double[coalitions.sets().size()][width];
            return question.model()
                    .ask(
                            (long) values.length * background.length,
                            (i, to) -> {
                                double[] other = background[(int) (i % background.length)];
                                BitSet set = coalitions.sets().get((int) (i / background.length));
                                System.arraycopy(other, 0, to, 0, to.length);
                                for (int v = 0; v < varying.length; v++) {
                                    if (set.get(v)) {
                                        to[varying[v]] = x[varying[v]];
                                    }
                                }
                            },
                            (i, found, at, w) -> {
                                double[] sum = values[(int) (i / background.length)];
                                for (int o = 0; o < w; o++) {
                                    sum[o] += found[at + o] / background.length;
                                }
                            })
                    .thenRun(() -> finish(empty, values, coalitions));
        }

        private void finish(double[] empty, double[][] values, Coalitions coalitions) {
            int width = question.width();
            double[] whole = question.predictions()[row].clone();
            link(whole, logit);
            for (double[] value : values) {
                link(value, logit);
            }
            double[][] shap = new double[width][question.features()];
            double[][] found = varying.length == 0
                    ? new double[width][0]
                    : coalitions.all()
                            ? exact(varying.length, empty, values, whole)
                            : fitted(varying.length, coalitions, empty, values, whole, question.budget());
            for (int o = 0; o < width; o++) {
                for (int v = 0; v < varying.length; v++) {
                    shap[o][varying[v]] = found[o][v];
                }
            }
            ShapValues.put(
                    result,
                    question.options(),
                    empty,
                    shap,
                    question.predictions()[row],
                    whole,
                    question.columns().names());
        }
    }

    /**
     * Shapley values from all coalitions, by output and feature.
     *
     * @param values the predictions of all sets but the empty and the full one
     */
    static double[][] exact(int features, double[] empty, double[][] values, double[] whole) {
        int outputs = whole.length;
        double[][] found = new double[outputs][features];
        double[] weight = new double[features];
        // size! (features - size - 1)! / features!
        weight[0] = 1.0 / features;
        for (int size = 1; size < features; size++) {
            weight[size] = weight[size - 1] * size / (features - size);
        }
        int last = (1 << features) - 1;
        for (int set = 0; set < last; set++) {
            double[] without = set == 0 ? empty : values[set - 1];
            double w = weight[Integer.bitCount(set)];
            for (int f = 0; f < features; f++) {
                if ((set >>> f & 1) == 0) {
                    int more = set | 1 << f;
                    double[] with = more == last ? whole : values[more - 1];
                    for (int o = 0; o < outputs; o++) {
                        found[o][f] += w * (with[o] - without[o]);
                    }
                }
            }
        }
        return found;
    }

    /**
     * The least-squares fit under the constraint that the values add up: the last feature is substituted by the rest.
     */
    static double[][] fitted(
            int features,
            Coalitions coalitions,
            double[] empty,
            double[][] values,
            double[] whole,
            PredictionBudget budget) {
        int outputs = whole.length;
        LeastSquares system = new LeastSquares(features - 1, outputs);
        double[] line = new double[features - 1];
        double[] expected = new double[outputs];
        for (int s = 0; s < values.length; s++) {
            if (s % 256 == 0) {
                budget.alive();
            }
            BitSet set = coalitions.sets().get(s);
            double last = set.get(features - 1) ? 1 : 0;
            for (int f = 0; f < line.length; f++) {
                line[f] = (set.get(f) ? 1 : 0) - last;
            }
            for (int o = 0; o < outputs; o++) {
                expected[o] = values[s][o] - empty[o] - last * (whole[o] - empty[o]);
            }
            system.add(line, coalitions.weights()[s], expected);
        }
        double[][] solved = system.solve();
        double[][] found = new double[outputs][features];
        for (int o = 0; o < outputs; o++) {
            double rest = whole[o] - empty[o];
            for (int f = 0; f < line.length; f++) {
                found[o][f] = solved[o][f];
                rest -= solved[o][f];
            }
            found[o][features - 1] = rest;
        }
        return found;
    }
}
