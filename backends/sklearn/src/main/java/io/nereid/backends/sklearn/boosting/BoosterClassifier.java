// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.tensor.DataType;
import java.util.List;

/**
 * {@code XGBClassifier} and {@code LGBMClassifier}: the native model returns the probability of the second of two
 * classes or one for each class, and the predicted class follows from it as in those classes. Immutable.
 */
final class BoosterClassifier extends Classifier implements BoosterEstimator {
    private final LoadedBooster booster;
    private final boolean margins;
    private final boolean greatest;
    private final boolean decides;

    /**
     * @param margins whether the native model predicts class indexes, so that probabilities have to be computed from
     *     its margins
     * @param greatest whether the more probable of two classes is predicted, instead of the second one from one half
     * @param decides whether the class has a decision function, which returns the margins
     */
    BoosterClassifier(
            String type,
            LoadedBooster booster,
            ClassLabels labels,
            boolean margins,
            boolean greatest,
            boolean decides) {
        super(type, booster.features(), labels);
        this.booster = booster;
        this.margins = margins;
        this.greatest = greatest;
        this.decides = decides;
    }

    @Override
    public LoadedBooster booster() {
        return booster;
    }

    @Override
    public boolean hasProba() {
        return true;
    }

    @Override
    public boolean hasDecision() {
        return decides;
    }

    @Override
    public DataTable decision(DataTable table) {
        return booster.run(LoadedBooster.MARGIN, table);
    }

    @Override
    public List<PredictMethod> methods() {
        return decides
                ? List.of(PredictMethod.PREDICT, PredictMethod.PREDICT_PROBA, PredictMethod.DECISION_FUNCTION)
                : List.of(PredictMethod.PREDICT, PredictMethod.PREDICT_PROBA);
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? super.type(method) : booster.type(LoadedBooster.DEFAULT);
    }

    @Override
    public DataTable proba(DataTable table) {
        if (margins) {
            DataTable scores = booster.run(LoadedBooster.MARGIN, table);
            softmax(scores.values(), scores.columns());
            return scores;
        }
        DataTable p = booster.run(LoadedBooster.DEFAULT, table);
        return p.columns() == 1 ? twoColumns(p.values()) : p;
    }

    @Override
    public int[] classes(DataTable table) {
        DataTable p = booster.run(LoadedBooster.DEFAULT, table);
        if (p.columns() > 1) {
            return ClassLabels.greatest(p);
        }
        int[] classes = new int[p.rows()];
        for (int r = 0; r < classes.length; r++) {
            double value = p.values()[r];
            classes[r] = margins
                    ? Math.min(Math.max((int) value, 0), labels().count() - 1)
                    : (greatest ? value > 1 - value : value > 0.5) ? 1 : 0;
        }
        return classes;
    }
}
