// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import io.nereid.explain.model.RowModel;
import io.nereid.explain.request.ExplainOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Formats SHAP values, and reads those that a model computes itself. Stateless. */
public final class ShapValues {
    private ShapValues() {}

    /**
     * Writes an explanation.
     *
     * @param base the base values by output
     * @param shap the SHAP values by output and feature
     * @param prediction the model's prediction
     * @param explained by output, the sum of the base and SHAP values
     */
    static void put(
            Map<String, Object> to,
            ExplainOptions options,
            double[] base,
            double[][] shap,
            double[] prediction,
            double[] explained,
            List<String> names) {
        int target = ExplanationTask.target(options, explained);
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

    /** A single number as such, otherwise the array. */
    static Object single(double[] values) {
        return values.length == 1 ? (Object) values[0] : values;
    }

    /**
     * Explains with the contributions that the model's own signature returns: for each output the features' values and
     * the base value.
     */
    public static CompletableFuture<ExplanationTask.Answer> own(ExplanationTask question, RowModel contributions) {
        int features = question.features();
        return contributions.ask(question.rows()).thenApply(all -> {
            List<Object> results = new ArrayList<>();
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
                results.add(one);
            }
            return new ExplanationTask.Answer(results, Map.of("algorithm", "tree_shap", "explains", "margin"));
        });
    }
}
