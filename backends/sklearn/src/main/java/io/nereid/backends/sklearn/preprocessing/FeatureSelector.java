// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Transformer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Feature selection: {@code VarianceThreshold} and {@code SelectKBest}, and the columns of a bagged estimator.
 * Immutable.
 */
public final class FeatureSelector extends Transformer {
    private final int[] kept;

    public FeatureSelector(String type, int features, int[] kept) {
        super(type, features, kept.length);
        this.kept = kept;
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        return table.select(kept);
    }

    /** Selects the columns whose variance is above a threshold. */
    public static Estimator varianceThreshold(EstimatorAttributes f) {
        double threshold = f.number("threshold", 0);
        double[] variances = f.doubles("variances_");
        List<Integer> kept = new ArrayList<>();
        for (int i = 0; i < variances.length; i++) {
            if (variances[i] > threshold) {
                kept.add(i);
            }
        }
        return new FeatureSelector(f.type(), variances.length, MatrixOps.ints(kept));
    }

    /** Selects the k columns of the highest scores; of equal scores the later ones, as numpy's stable sort does. */
    public static Estimator selectKBest(EstimatorAttributes f) {
        return kBest(f, f.any("k"));
    }

    /** Likewise, with the number given: any other value is for all columns. */
    public static Estimator kBest(EstimatorAttributes f, @Nullable Object most) {
        double[] scores = f.doubles("scores_");
        int k = most instanceof Number n ? n.intValue() : scores.length;
        Integer[] order = new Integer[scores.length];
        for (int i = 0; i < order.length; i++) {
            order[i] = i;
            scores[i] = Double.isNaN(scores[i]) ? -Double.MAX_VALUE : scores[i];
        }
        Arrays.sort(order, (a, b) -> Double.compare(scores[a], scores[b]));
        int[] kept = new int[Math.min(Math.max(k, 0), order.length)];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = order[order.length - kept.length + i];
        }
        Arrays.sort(kept);
        return new FeatureSelector(f.type(), scores.length, kept);
    }
}
