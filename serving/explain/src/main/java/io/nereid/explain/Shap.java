// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** How SHAP values are told, and those that a model has of its own. Stateless. */
final class Shap {
    private Shap() {}

    /**
     * Fills in an explanation.
     *
     * @param base by output
     * @param shap by output and feature
     * @param prediction what the model says
     * @param explained by output what base and values add up to
     */
    static void put(
            Map<String, Object> to,
            Options options,
            double[] base,
            double[][] shap,
            double[] prediction,
            double[] explained,
            List<String> names) {
        int target = Question.target(options, explained);
        if (target >= 0 || explained.length == 1) {
            int at = Math.max(0, target);
            if (target >= 0) {
                to.put("target", target);
            }
            to.put("base_value", base[at]);
            to.put("shap_values", shap[at]);
            to.put("explained_value", explained[at]);
        } else {
            to.put("base_value", base);
            to.put("shap_values", shap);
            to.put("explained_value", explained);
        }
        to.put("prediction", single(prediction));
        to.put("feature_names", names);
    }

    /** A number alone, or all of them. */
    static Object single(double[] values) {
        return values.length == 1 ? (Object) values[0] : values;
    }

    /** The contributions that a model's own signature gives: for each output the features' and the base value. */
    static CompletableFuture<Question.Answer> own(Question question, RowModel contributions) {
        int features = question.features();
        return contributions.ask(question.rows()).thenApply(all -> {
            List<Object> told = new ArrayList<>();
            for (int i = 0; i < all.length; i++) {
                double[] flat = all[i];
                int outputs = flat.length / (features + 1);
                double[] base = new double[outputs];
                double[] sum = new double[outputs];
                double[][] shap = new double[outputs][features];
                for (int o = 0; o < outputs; o++) {
                    int at = o * (features + 1);
                    System.arraycopy(flat, at, shap[o], 0, features);
                    base[o] = flat[at + features];
                    sum[o] = base[o];
                    for (double value : shap[o]) {
                        sum[o] += value;
                    }
                }
                Map<String, Object> one = new LinkedHashMap<>();
                put(
                        one,
                        question.options(),
                        base,
                        shap,
                        question.predictions()[i],
                        sum,
                        question.columns().names());
                told.add(one);
            }
            return new Question.Answer(told, Map.of("algorithm", "tree_shap", "explains", "margin"));
        });
    }
}
