// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A model as read from its file, before trees are packed for scoring. Not modified after construction.
 *
 * @param format {@link #XGBOOST} or {@link #LIGHTGBM}
 * @param objective the training objective, as in the file
 * @param trees in the order in which they are added; empty for a linear model
 * @param weights the weights of a linear model, by feature and output, biases last; null for trees
 * @param features the number of features
 * @param outputs raw scores per row
 * @param base the initial raw scores
 * @param divisor divides the scores before the link function (averaged forests); 1 for none
 * @param link converts scores to predictions
 * @param classes the number of classes; 0 for a model that is not a classifier
 * @param names the feature names; empty when the file has none
 * @param iterations the index of the first tree of each iteration, then the number of trees; empty when unknown
 * @param best the best iteration of early stopping, or -1
 */
public record ParsedModel(
        String format,
        String objective,
        List<ParsedTree> trees,
        float @Nullable [] weights,
        int features,
        int outputs,
        double[] base,
        double divisor,
        LinkFunction link,
        int classes,
        List<String> names,
        int[] iterations,
        int best) {
    /** The format of XGBoost's models, and the name of their backend. */
    public static final String XGBOOST = "xgboost";
    /** The format of LightGBM's models, and the name of their backend. */
    public static final String LIGHTGBM = "lightgbm";

    /** A model whose iterations are unknown. */
    public ParsedModel(
            String format,
            String objective,
            List<ParsedTree> trees,
            float @Nullable [] weights,
            int features,
            int outputs,
            double[] base,
            double divisor,
            LinkFunction link,
            int classes,
            List<String> names) {
        this(format, objective, trees, weights, features, outputs, base, divisor, link, classes, names, new int[0], -1);
    }

    /** A copy with the ranges of its iterations. */
    public ParsedModel withIterations(int[] begins, int bestOfThem) {
        return new ParsedModel(
                format,
                objective,
                trees,
                weights,
                features,
                outputs,
                base,
                divisor,
                link,
                classes,
                names,
                begins,
                bestOfThem);
    }

    /** The number of boosting iterations; 0 when unknown. */
    public int rounds() {
        return Math.max(0, iterations.length - 1);
    }

    /** A copy with the trees of iterations {@code begin} to {@code end}; an average is taken over these only. */
    public ParsedModel between(int begin, int end) {
        return new ParsedModel(
                format,
                objective,
                List.copyOf(trees.subList(iterations[begin], iterations[end])),
                weights,
                features,
                outputs,
                base,
                divisor == 1 ? 1 : Math.max(1, end - begin),
                link,
                classes,
                names);
    }

    /** A copy without trees, which frees their memory once they are packed. */
    public ParsedModel withoutTrees() {
        return new ParsedModel(
                format, objective, List.of(), weights, features, outputs, base, divisor, link, classes, names);
    }
}
