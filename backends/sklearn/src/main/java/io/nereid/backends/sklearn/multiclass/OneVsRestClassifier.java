// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.multiclass;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/** {@code OneVsRestClassifier}: one binary classifier per class, which separates it from all others. Stateless. */
public final class OneVsRestClassifier {
    private OneVsRestClassifier() {}

    public static Estimator of(EstimatorAttributes f, Estimator.Factory factory) {
        EstimatorAttributes binarizer = new EstimatorAttributes(f.object("label_binarizer_"));
        List<BinaryMember> members = BinaryMember.members(f, factory);
        ClassLabels labels = ClassLabels.of(binarizer.array("classes_"));
        if (members.size() != (labels.count() == 2 && !isMultilabel(binarizer) ? 1 : labels.count())) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has " + members.size() + " estimators for " + labels.count() + " classes");
        }
        return isMultilabel(binarizer) ? new MultiLabel(f, members) : new SingleLabel(f, members, labels);
    }

    private static boolean isMultilabel(EstimatorAttributes binarizer) {
        return binarizer.text("y_type_", "").startsWith("multilabel");
    }

    private static DataTable beside(List<BinaryMember> members, DataTable table, boolean proba) {
        DataTable all = DataTable.of(table.rows(), members.size());
        for (int d = 0; d < members.size(); d++) {
            double[] one = proba ? members.get(d).proba(table) : members.get(d).scores(table);
            for (int r = 0; r < one.length; r++) {
                all.values()[r * members.size() + d] = one[r];
            }
        }
        return all;
    }

    /** One-vs-rest for single-label targets: the class of the greatest confidence. Immutable. */
    private static final class SingleLabel extends Classifier {
        private final List<BinaryMember> members;

        SingleLabel(EstimatorAttributes f, List<BinaryMember> members, ClassLabels labels) {
            super(f.type(), BinaryMember.features(f, members), labels);
            this.members = members;
        }

        @Override
        public boolean hasProba() {
            return members.stream().allMatch(BinaryMember::hasProba);
        }

        @Override
        public boolean hasDecision() {
            return members.stream().allMatch(BinaryMember::hasDecision);
        }

        @Override
        public DataTable decision(DataTable table) {
            return beside(members, table, false);
        }

        @Override
        public int[] classes(DataTable table) {
            DataTable scores = beside(members, table, false);
            int[] classes = new int[table.rows()];
            for (int r = 0; r < classes.length; r++) {
                if (members.size() == 1) {
                    classes[r] = scores.values()[r] > members.get(0).threshold() ? 1 : 0;
                    continue;
                }
                // Of equal scores the last one wins, as in scikit-learn.
                for (int c = 1; c < members.size(); c++) {
                    classes[r] = scores.at(r, c) >= scores.at(r, classes[r]) ? c : classes[r];
                }
            }
            return classes;
        }

        @Override
        public DataTable proba(DataTable table) {
            DataTable all = beside(members, table, true);
            if (members.size() == 1) {
                return twoColumns(all.values());
            }
            for (int r = 0; r < all.rows(); r++) {
                double sum = 0;
                for (int c = 0; c < all.columns(); c++) {
                    sum += all.at(r, c);
                }
                for (int c = 0; c < all.columns(); c++) {
                    all.values()[r * all.columns() + c] /= sum;
                }
            }
            return all;
        }
    }

    /** One-vs-rest for multilabel targets: an indicator per class. Immutable. */
    private static final class MultiLabel extends Estimator {
        private final List<BinaryMember> members;

        MultiLabel(EstimatorAttributes f, List<BinaryMember> members) {
            super(f.type(), BinaryMember.features(f, members));
            this.members = members;
        }

        @Override
        public List<PredictMethod> methods() {
            List<PredictMethod> methods = new ArrayList<>(List.of(PredictMethod.PREDICT));
            if (members.stream().allMatch(BinaryMember::hasProba)) {
                methods.add(PredictMethod.PREDICT_PROBA);
            }
            if (members.stream().allMatch(BinaryMember::hasDecision)) {
                methods.add(PredictMethod.DECISION_FUNCTION);
            }
            return methods;
        }

        @Override
        public int width(PredictMethod method) {
            return members.size();
        }

        @Override
        public DataType type(PredictMethod method) {
            return method == PredictMethod.PREDICT ? DataType.INT64 : DataType.FP64;
        }

        @Override
        public DataTable apply(PredictMethod method, DataTable table) {
            DataTable all = beside(members, table, method == PredictMethod.PREDICT_PROBA);
            double[] values = all.values();
            for (int i = 0; method == PredictMethod.PREDICT && i < values.length; i++) {
                values[i] = values[i] > members.get(0).threshold() ? 1 : 0;
            }
            return all;
        }
    }
}
