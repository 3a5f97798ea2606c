// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import org.jspecify.annotations.Nullable;

/** The sums of boosted trees: a column a class, or one for two classes and for numbers. Immutable. */
interface RawScores {
    /** How many there are a row. */
    int width();

    /** Columns it takes. */
    int inputs(Fields f);

    Table scores(Table table);

    /** By what the sum of two classes is multiplied before it becomes a probability. */
    default double scale() {
        return 1;
    }

    /** What its columns go through first; null for nothing. */
    default @Nullable Estimator before() {
        return null;
    }

    /** A classifier by such sums. Immutable. */
    final class Classes extends Classifier {
        private final RawScores scores;

        Classes(Fields f, RawScores scores) {
            super(f.type(), scores.inputs(f), Labels.of(f.array("classes_")));
            this.scores = scores;
            int classes = labels().count();
            if (scores.width() != (classes == 2 ? 1 : classes)) {
                throw Refusal.corrupt(
                        f.path() + " has " + scores.width() + " trees a stage for " + classes + " classes");
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
