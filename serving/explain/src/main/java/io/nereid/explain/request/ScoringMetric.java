// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** Metrics that score predictions against true values, with scikit-learn's names. */
public enum ScoringMetric {
    R2(true),
    MSE(false),
    RMSE(false),
    MAE(false),
    ACCURACY(true),
    LOG_LOSS(false),
    AUC(true);

    /** The names in requests. */
    public static final List<String> NAMES =
            Arrays.stream(values()).map(m -> m.name().toLowerCase(Locale.ROOT)).toList();

    private final boolean greaterIsBetter;

    ScoringMetric(boolean greaterIsBetter) {
        this.greaterIsBetter = greaterIsBetter;
    }

    public static ScoringMetric of(String name) {
        return valueOf(name.toUpperCase(Locale.ROOT));
    }

    /** How much worse {@code score} is than {@code before}. */
    public double loss(double before, double score) {
        return greaterIsBetter ? before - score : score - before;
    }

    /** The index of the greatest value. */
    public static int greatest(double[] values) {
        int best = 0;
        for (int i = 1; i < values.length; i++) {
            best = values[i] > values[best] ? i : best;
        }
        return best;
    }

    /**
     * Computes the score.
     *
     * @param predictions by row
     * @param target the index of the number in a prediction; -1 for all, or the only one
     */
    public double score(double[][] predictions, double[] truth, int target) {
        int width = predictions[0].length;
        if (this != ACCURACY && this != LOG_LOSS && width > 1 && target < 0 && !(this == AUC && width == 2)) {
            throw ServingException.invalidArgument(
                    "metric '" + name().toLowerCase(Locale.ROOT) + "' is for one number, and a prediction has " + width,
                    "select one with parameter target, or use metric accuracy or log_loss");
        }
        int at = width == 1 ? 0 : target >= 0 ? target : width - 1;
        double sum = 0;
        int n = truth.length;
        switch (this) {
            case ACCURACY:
                for (int i = 0; i < n; i++) {
                    double predicted = width == 1 ? Math.rint(predictions[i][0]) : greatest(predictions[i]);
                    sum += predicted == truth[i] ? 1 : 0;
                }
                return sum / n;
            case LOG_LOSS:
                for (int i = 0; i < n; i++) {
                    sum -= Math.log(Math.max(1e-15, probability(predictions[i], truth[i])));
                }
                return sum / n;
            case MAE:
                for (int i = 0; i < n; i++) {
                    sum += Math.abs(predictions[i][at] - truth[i]);
                }
                return sum / n;
            case AUC:
                return auc(predictions, truth, at);
            default:
                break;
        }
        double mean = Arrays.stream(truth).average().orElse(0);
        double total = 0;
        for (int i = 0; i < n; i++) {
            sum += (predictions[i][at] - truth[i]) * (predictions[i][at] - truth[i]);
            total += (truth[i] - mean) * (truth[i] - mean);
        }
        if (this == MSE) {
            return sum / n;
        }
        if (this == RMSE) {
            return Math.sqrt(sum / n);
        }
        return total == 0 ? (sum == 0 ? 1 : 0) : 1 - sum / total;
    }

    private static double probability(double[] prediction, double truth) {
        int width = prediction.length;
        if (truth != Math.rint(truth) || truth < 0 || truth >= Math.max(2, width)) {
            throw ServingException.invalidArgument(
                    "target " + truth + " is not a class (expected: 0 to " + (Math.max(2, width) - 1) + ")");
        }
        return width > 1 ? prediction[(int) truth] : truth == 1 ? prediction[0] : 1 - prediction[0];
    }

    /** The area under the ROC curve by the rank sum of the positives; ties get their mean rank. */
    private static double auc(double[][] predictions, double[] truth, int at) {
        Integer[] order = new Integer[truth.length];
        for (int i = 0; i < order.length; i++) {
            order[i] = i;
        }
        Arrays.sort(order, Comparator.comparingDouble(i -> predictions[i][at]));
        double ranks = 0;
        double positives = 0;
        for (int i = 0; i < order.length; ) {
            int end = i;
            while (end < order.length && predictions[order[end]][at] == predictions[order[i]][at]) {
                end++;
            }
            for (int k = i; k < end; k++) {
                if (truth[order[k]] == 1) {
                    ranks += (i + end + 1) / 2.0;
                    positives++;
                } else if (truth[order[k]] != 0) {
                    throw ServingException.invalidArgument(
                            "metric 'auc' takes targets 0 and 1, and there is " + truth[order[k]]);
                }
            }
            i = Math.max(end, i + 1);
        }
        double negatives = truth.length - positives;
        if (positives == 0 || negatives == 0) {
            throw ServingException.invalidArgument("metric 'auc' needs targets of both classes, 0 and 1");
        }
        return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
    }
}
