// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import org.jspecify.annotations.Nullable;

/**
 * The raw predictions of boosted trees ({@code _raw_predict}), before the link function: one column per class, or a
 * single column for two classes and for regression. Immutable.
 */
interface RawScores {
    /** The number of raw predictions per row. */
    int width();

    /** The number of input columns. */
    int inputs(Fields f);

    Table scores(Table table);

    /** The factor of a binary raw prediction inside the logistic function: 2 for exponential loss. */
    default double scale() {
        return 1;
    }

    /** The preprocessor that the input passes first; null when there is none. */
    default @Nullable Estimator before() {
        return null;
    }

    /** A classifier on top of raw predictions. Immutable. */
    final class Classes extends Classifier {
        private final RawScores scores;

        Classes(Fields f, RawScores scores) {
            super(f.type(), scores.inputs(f), Labels.of(f.array("classes_")));
            this.scores = scores;
            int classes = labels().count();
            if (scores.width() != (classes == 2 ? 1 : classes)) {
                throw Refusal.corrupt(
                        f.path() + " has " + scores.width() + " trees per stage for " + classes + " classes");
            }
        }

        @Override
        @Nullable Estimator before() {
            return scores.before();
        }

        @Override
        boolean hasProba() {
            return true;
        }

        @Override
        boolean hasDecision() {
            return true;
        }

        @Override
        Table decision(Table table) {
            return scores.scores(table);
        }

        @Override
        Table proba(Table table) {
            Table raw = decision(table);
            if (raw.columns() > 1) {
                softmax(raw.values(), raw.columns());
                return raw;
            }
            double[] positive = raw.values();
            for (int i = 0; i < positive.length; i++) {
                positive[i] = sigmoid(positive[i] * scores.scale());
            }
            return twoColumns(positive);
        }
    }
}
