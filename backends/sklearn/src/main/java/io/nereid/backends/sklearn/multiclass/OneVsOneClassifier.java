// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.multiclass;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.List;

/**
 * {@code OneVsOneClassifier}: one binary classifier per pair of classes. Predicts by votes of the pairs, with ties
 * broken by the sum of their confidences. Immutable.
 */
public final class OneVsOneClassifier extends Classifier {
    private final List<BinaryMember> members;

    private OneVsOneClassifier(EstimatorAttributes f, List<BinaryMember> members, ClassLabels labels) {
        super(f.type(), BinaryMember.features(f, members), labels);
        this.members = members;
    }

    public static Estimator of(EstimatorAttributes f, Estimator.Factory factory) {
        if (f.has("pairwise_indices_")) {
            throw f.unsupported("pairwise_indices_");
        }
        List<BinaryMember> members = BinaryMember.members(f, factory);
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        int classes = labels.count();
        if (members.size() != (long) classes * (classes - 1) / 2) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has " + members.size() + " estimators for " + classes + " classes");
        }
        return new OneVsOneClassifier(f, members, labels);
    }

    @Override
    public boolean hasDecision() {
        return true;
    }

    @Override
    public DataTable decision(DataTable table) {
        int classes = labels().count();
        DataTable votes = DataTable.of(table.rows(), classes);
        double[] sure = new double[votes.values().length];
        int d = 0;
        for (int i = 0; i < classes; i++) {
            for (int j = i + 1; j < classes; j++, d++) {
                double[] scores = members.get(d).scores(table);
                double[] predicted = members.get(d).predicted(table);
                for (int r = 0; r < scores.length; r++) {
                    sure[r * classes + i] -= scores[r];
                    sure[r * classes + j] += scores[r];
                    votes.values()[r * classes + (predicted[r] == 0 ? i : j)]++;
                }
            }
        }
        // Confidences are scaled to less than a third of a vote, so that they only break ties.
        for (int i = 0; i < sure.length; i++) {
            votes.values()[i] += sure[i] / (3 * (Math.abs(sure[i]) + 1));
        }
        return classes == 2 ? votes.select(new int[] {1}) : votes;
    }

    @Override
    public int[] classes(DataTable table) {
        DataTable scores = decision(table);
        if (labels().count() > 2) {
            return ClassLabels.greatest(scores);
        }
        int[] classes = new int[table.rows()];
        for (int r = 0; r < classes.length; r++) {
            classes[r] = scores.values()[r] > members.get(0).threshold() ? 1 : 0;
        }
        return classes;
    }
}
