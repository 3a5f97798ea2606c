// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.multiclass;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import java.util.List;

/**
 * {@code OutputCodeClassifier}: each class has a code of several bits, each bit a binary classifier; predicts the class
 * whose code is nearest to the classifiers' scores. Immutable.
 */
public final class OutputCodeClassifier extends Classifier {
    private final List<BinaryMember> members;
    private final DenseMatrix codes;

    private OutputCodeClassifier(EstimatorAttributes f, List<BinaryMember> members) {
        super(f.type(), BinaryMember.features(f, members), ClassLabels.of(f.array("classes_")));
        this.members = members;
        this.codes = DenseMatrix.of(f, labels().count(), members.size(), "code_book_");
    }

    public static OutputCodeClassifier of(EstimatorAttributes f, Estimator.Factory factory) {
        return new OutputCodeClassifier(f, BinaryMember.members(f, factory));
    }

    @Override
    public int[] classes(DataTable table) {
        int bits = members.size();
        double[] scores = new double[table.rows() * bits];
        for (int m = 0; m < bits; m++) {
            double[] one = members.get(m).scores(table);
            for (int r = 0; r < one.length; r++) {
                scores[r * bits + m] = one[r];
            }
        }
        int[] classes = new int[table.rows()];
        for (int r = 0; r < classes.length; r++) {
            classes[r] = codes.nearest(scores, r * bits);
        }
        return classes;
    }
}
