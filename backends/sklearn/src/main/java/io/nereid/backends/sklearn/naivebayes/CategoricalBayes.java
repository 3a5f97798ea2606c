// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.naivebayes;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import java.util.List;

/** {@code CategoricalNB}: naive Bayes over columns of category numbers. Immutable. */
public final class CategoricalBayes extends Classifier {
    /** By column, the log probability of each category, by category and class. */
    private final DenseMatrix[] logs;

    private final double[] priors;

    private CategoricalBayes(EstimatorAttributes f, DenseMatrix[] logs) {
        super(f.type(), logs.length, ClassLabels.of(f.array("classes_")));
        this.logs = logs;
        this.priors = f.doubles(labels().count(), "class_log_prior_");
    }

    public static CategoricalBayes of(EstimatorAttributes f) {
        List<Object> given = f.list("feature_log_prob_");
        int classes = ClassLabels.of(f.array("classes_")).count();
        DenseMatrix[] logs = new DenseMatrix[given.size()];
        for (int i = 0; i < logs.length; i++) {
            if (!(given.get(i) instanceof NdArray a) || a.rank() != 2 || a.dim(0) != classes) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has no probabilities for " + classes + " classes in column " + i);
            }
            logs[i] = DenseMatrix.over(a.dim(0), a.dim(1), a.doubles()).transposed();
        }
        return new CategoricalBayes(f, logs);
    }

    @Override
    public boolean quick() {
        return logs.length * priors.length < 4096;
    }

    @Override
    public boolean hasProba() {
        return true;
    }

    @Override
    public int[] classes(DataTable table) {
        return ClassLabels.greatest(scores(table));
    }

    private DataTable scores(DataTable table) {
        double[] x = table.finite(type());
        DataTable scores = DataTable.of(table.rows(), priors.length);
        for (int r = 0; r < table.rows(); r++) {
            System.arraycopy(priors, 0, scores.values(), r * priors.length, priors.length);
            for (int i = 0; i < logs.length; i++) {
                double category = x[r * logs.length + i];
                if (!(category >= 0 && category < logs[i].rows())) {
                    throw ServingException.invalidArgument(type() + " was given category " + category + " in column "
                            + i + " (expected: 0 to " + (logs[i].rows() - 1) + ")");
                }
                for (int c = 0; c < priors.length; c++) {
                    scores.values()[r * priors.length + c] += logs[i].at((int) category, c);
                }
            }
        }
        return scores;
    }

    @Override
    public DataTable proba(DataTable table) {
        DataTable scores = scores(table);
        softmax(scores.values(), scores.columns());
        return scores;
    }
}
