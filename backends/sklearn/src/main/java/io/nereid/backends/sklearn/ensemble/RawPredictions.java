// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import org.jspecify.annotations.Nullable;

/**
 * The raw predictions of boosted trees ({@code _raw_predict}), before the link function: one column per class, or a
 * single column for two classes and for regression. Immutable.
 */
interface RawPredictions {
    /** The number of raw predictions per row. */
    int width();

    /** The number of input columns. */
    int inputs(EstimatorAttributes f);

    DataTable scores(DataTable table);

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
        private final RawPredictions scores;

        Classes(EstimatorAttributes f, RawPredictions scores) {
            super(f.type(), scores.inputs(f), ClassLabels.of(f.array("classes_")));
            this.scores = scores;
            int classes = labels().count();
            if (scores.width() != (classes == 2 ? 1 : classes)) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has " + scores.width() + " trees per stage for " + classes + " classes");
            }
        }

        @Override
        public @Nullable Estimator before() {
            return scores.before();
        }

        @Override
        public boolean hasProba() {
            return true;
        }

        @Override
        public boolean hasDecision() {
            return true;
        }

        @Override
        public DataTable decision(DataTable table) {
            return scores.scores(table);
        }

        @Override
        public DataTable proba(DataTable table) {
            DataTable raw = decision(table);
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
