// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.modelselection;

import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.PyGlobal;
import io.nereid.backends.sklearn.pickle.PyNone;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * {@code FixedThresholdClassifier} and {@code TunedThresholdClassifierCV}: a binary classifier that predicts the positive
 * class from a threshold of its score on. Immutable.
 */
public final class ThresholdClassifier extends Classifier {
    /** The metrics of scikit-learn whose positive class is 1 unless they are given another. */
    private static final Set<String> POSITIVE_ONE =
            Set.of("precision_score", "recall_score", "f1_score", "fbeta_score", "jaccard_score");

    private final Estimator inner;
    private final PredictMethod method;
    private final double threshold;
    private final int positive;

    private ThresholdClassifier(
            String type, Estimator inner, ClassLabels labels, PredictMethod method, double threshold, int positive) {
        super(type, inner.features(), labels);
        this.inner = inner;
        this.method = method;
        this.threshold = threshold;
        this.positive = positive;
    }

    /** With the threshold that is a parameter. */
    public static ThresholdClassifier fixed(EstimatorAttributes f, Estimator.Factory factory) {
        Estimator inner = factory.build(f.required("estimator_", "estimator"));
        PredictMethod method = method(f, inner);
        double auto = method == PredictMethod.PREDICT_PROBA ? 0.5 : 0;
        return of(f, inner, method, f.number("threshold", auto), f.any("pos_label"));
    }

    /** With the threshold that cross-validation found. */
    public static ThresholdClassifier tuned(EstimatorAttributes f, Estimator.Factory factory) {
        Estimator inner = factory.build(f.required("estimator_"));
        EstimatorAttributes scorer = new EstimatorAttributes(f.object("_curve_scorer"));
        Object positive = scorer.any("_kwargs") instanceof PyDict d ? d.items().get("pos_label") : null;
        if (positive == null
                && scorer.any("_score_func") instanceof PyGlobal function
                && POSITIVE_ONE.contains(function.name())) {
            positive = 1L;
        }
        return of(f, inner, method(f, inner), f.number("best_threshold_"), positive);
    }

    private static PredictMethod method(EstimatorAttributes f, Estimator inner) {
        String name = f.text("response_method", "auto");
        PredictMethod method = name.equals("auto")
                ? inner.can(PredictMethod.PREDICT_PROBA) ? PredictMethod.PREDICT_PROBA : PredictMethod.DECISION_FUNCTION
                : PredictMethod.of(name);
        if (method == null
                || !inner.can(method)
                || (method != PredictMethod.PREDICT_PROBA && method != PredictMethod.DECISION_FUNCTION)) {
            throw f.unsupported("response_method");
        }
        return method;
    }

    private static ThresholdClassifier of(
            EstimatorAttributes f, Estimator inner, PredictMethod method, double threshold, @Nullable Object positive) {
        Estimator last = inner;
        while (last instanceof Pipeline pipeline) {
            last = pipeline.last();
        }
        if (!(last instanceof Classifier classifier) || classifier.labels().count() != 2) {
            throw UnsupportedModel.unsupported(
                    f.path() + " with a " + last.type() + " is not supported (expected: a classifier of two classes)");
        }
        ClassLabels labels = classifier.labels();
        Object label = positive instanceof NdArray a && a.count() == 1 ? a.values()[0] : positive;
        int place = 1;
        if (label != null && label != PyNone.NONE) {
            place = labels.indexOf(
                    label instanceof Number n ? n.doubleValue() : label instanceof Boolean b ? (b ? 1 : 0) : Double.NaN,
                    label instanceof String s ? s : null);
        }
        return new ThresholdClassifier(f.type(), inner, labels, method, threshold, place);
    }

    @Override
    public @Nullable Estimator before() {
        return inner;
    }

    @Override
    public boolean hasProba() {
        return inner.can(PredictMethod.PREDICT_PROBA);
    }

    @Override
    public boolean hasDecision() {
        return inner.can(PredictMethod.DECISION_FUNCTION);
    }

    @Override
    public DataTable proba(DataTable table) {
        return inner.checked(PredictMethod.PREDICT_PROBA, table);
    }

    @Override
    public DataTable decision(DataTable table) {
        return inner.checked(PredictMethod.DECISION_FUNCTION, table);
    }

    @Override
    public int[] classes(DataTable table) {
        DataTable scores = inner.checked(method, table);
        int[] classes = new int[table.rows()];
        for (int r = 0; r < classes.length; r++) {
            double score = method == PredictMethod.PREDICT_PROBA
                    ? scores.at(r, positive)
                    : positive == 1 ? scores.at(r, 0) : -scores.at(r, 0);
            classes[r] = score >= threshold ? positive : 1 - positive;
        }
        return classes;
    }
}
