// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a model file says. Read only once it is made.
 *
 * @param format the backend's name
 * @param objective as the file has it
 * @param trees in the order in which they are added; empty for a linear model
 * @param weights of a linear model, by feature and output, biases last; null for trees
 * @param features values of a row
 * @param outputs sums of a row
 * @param base what each sum begins with
 * @param divisor by which sums are divided before the link, 1 for none
 * @param link from sums to answers
 * @param classes that a row may be of; 0 when the model does not classify
 * @param names of the features; empty when there are none
 * @param iterations places among the trees where iterations begin, and how many trees there are; empty when there are none
 * @param best the iteration that early stopping found best, or -1
 */
record ParsedModel(
        String format,
        String objective,
        List<ParsedTree> trees,
        float @Nullable [] weights,
        int features,
        int outputs,
        double[] base,
        double divisor,
        Link link,
        int classes,
        List<String> names,
        int[] iterations,
        int best) {
    /** Without iterations. */
    ParsedModel(
            String format,
            String objective,
            List<ParsedTree> trees,
            float @Nullable [] weights,
            int features,
            int outputs,
            double[] base,
            double divisor,
            Link link,
            int classes,
            List<String> names) {
        this(format, objective, trees, weights, features, outputs, base, divisor, link, classes, names, new int[0], -1);
    }

    /** With iterations that follow each other among the trees. */
    ParsedModel withIterations(int[] begins, int bestOfThem) {
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

    /** Iterations that there are. */
    int rounds() {
        return Math.max(0, iterations.length - 1);
    }

    /** With the trees of some iterations only; an average is one of these. */
    ParsedModel between(int begin, int end) {
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

    /** Everything but the trees. */
    ParsedModel withoutTrees() {
        return new ParsedModel(
                format, objective, List.of(), weights, features, outputs, base, divisor, link, classes, names);
    }
}
