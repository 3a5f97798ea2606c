// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.featureselection;

import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.preprocessing.FeatureSelector;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * The columns that selectors keep: {@code SelectFromModel} by the importances of a model, {@code RFE}, {@code RFECV} and
 * {@code SequentialFeatureSelector} by what their training found, {@code SelectPercentile}, {@code SelectFpr},
 * {@code SelectFdr}, {@code SelectFwe} and {@code GenericUnivariateSelect} by univariate tests. Stateless.
 */
public final class ModelSelection {
    private ModelSelection() {}

    /** The columns whose importance reaches a threshold, at most as many as a parameter says. */
    public static Estimator fromModel(EstimatorAttributes f) {
        EstimatorAttributes estimator =
                new EstimatorAttributes(f.has("estimator_") ? f.object("estimator_") : f.object("estimator"));
        double[][] rows = FeatureImportances.of(f, estimator, f.text("importance_getter", "auto"));
        double[] scores = FeatureImportances.norm(rows, rows.length == 1 ? 1 : f.number("norm_order", 1));
        double threshold = threshold(f, estimator, scores);
        boolean[] candidates = new boolean[scores.length];
        Arrays.fill(candidates, true);
        if (f.has("max_features")) {
            Object most = f.required("max_features_", "max_features");
            if (!(most instanceof Number count)) {
                throw f.unsupported("max_features");
            }
            Arrays.fill(candidates, false);
            Integer[] order = new Integer[scores.length];
            for (int i = 0; i < order.length; i++) {
                order[i] = i;
            }
            Arrays.sort(order, (a, b) -> Double.compare(-scores[a], -scores[b]));
            for (int i = 0; i < Math.min(order.length, count.intValue()); i++) {
                candidates[order[i]] = true;
            }
        }
        List<Integer> kept = new ArrayList<>();
        for (int i = 0; i < scores.length; i++) {
            if (candidates[i] && !(scores[i] < threshold)) {
                kept.add(i);
            }
        }
        return new FeatureSelector(f.type(), scores.length, MatrixOps.ints(kept));
    }

    private static double threshold(EstimatorAttributes f, EstimatorAttributes estimator, double[] scores) {
        Object given = f.any("threshold");
        if (given instanceof Number number) {
            return number.doubleValue();
        }
        String text = given instanceof String s ? s : sparse(estimator) ? "" : "mean";
        if (text.isEmpty()) {
            // What a penalty has made zero, with a margin for rounding.
            return 1e-5;
        }
        String[] parts = text.split("\\*", -1);
        String reference = parts[parts.length - 1].strip();
        try {
            double scale = parts.length == 2 ? Double.parseDouble(parts[0].strip()) : 1;
            if (parts.length <= 2 && reference.equals("mean")) {
                return scale * mean(scores);
            }
            if (parts.length <= 2 && reference.equals("median")) {
                return scale * median(scores);
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw f.unsupported("threshold");
    }

    /** Whether the estimator was trained with an L1 penalty, which makes coefficients zero. */
    private static boolean sparse(EstimatorAttributes estimator) {
        String name = estimator.type();
        boolean ratio = switch (name) {
            case "ElasticNet", "LogisticRegression" -> one(estimator, "l1_ratio");
            case "ElasticNetCV", "LogisticRegressionCV" -> one(estimator, "l1_ratio_");
            default -> false;
        };
        return name.contains("Lasso") || estimator.text("penalty", "").equals("l1") || ratio;
    }

    private static boolean one(EstimatorAttributes estimator, String name) {
        if (!estimator.has(name)) {
            return false;
        }
        for (double v : estimator.doubles(name)) {
            if (!(Math.abs(v - 1) <= 1e-8 + 1e-5)) {
                return false;
            }
        }
        return true;
    }

    private static double mean(double[] values) {
        double sum = 0;
        for (double v : values) {
            sum += v;
        }
        return sum / values.length;
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /** The columns that training found; {@code RFE} and {@code RFECV} also predict, with these columns. */
    public static Estimator supported(EstimatorAttributes f, Estimator.Factory factory) {
        int[] support = f.array("support_").ints();
        List<Integer> kept = new ArrayList<>();
        for (int i = 0; i < support.length; i++) {
            if (support[i] != 0) {
                kept.add(i);
            }
        }
        FeatureSelector selector = new FeatureSelector(f.type(), support.length, MatrixOps.ints(kept));
        return f.has("estimator_")
                ? new SelectingEstimator(f.type(), selector, factory.build(f.required("estimator_")))
                : selector;
    }

    /** The columns of the highest scores, a percentage of all; of equal scores at the limit the first ones. */
    public static Estimator percentile(EstimatorAttributes f) {
        return percentile(f, f.number("percentile", 10));
    }

    private static Estimator percentile(EstimatorAttributes f, double percentile) {
        double[] scores = f.doubles("scores_");
        for (int i = 0; i < scores.length; i++) {
            scores[i] = Double.isNaN(scores[i]) ? -Double.MAX_VALUE : scores[i];
        }
        double limit = percentile >= 100
                ? Double.NEGATIVE_INFINITY
                : percentile <= 0 ? Double.POSITIVE_INFINITY : percentileOf(scores, 100 - percentile);
        int above = 0;
        for (double score : scores) {
            above += score > limit ? 1 : 0;
        }
        int ties = (int) (scores.length * percentile / 100) - above;
        List<Integer> kept = new ArrayList<>();
        for (int i = 0; i < scores.length; i++) {
            if (scores[i] > limit || (scores[i] == limit && ties-- > 0)) {
                kept.add(i);
            }
        }
        return new FeatureSelector(f.type(), scores.length, MatrixOps.ints(kept));
    }

    private static double percentileOf(double[] values, double percentile) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        double place = (sorted.length - 1) * percentile / 100;
        int low = (int) Math.floor(place);
        double share = place - low;
        double from = sorted[low];
        double to = sorted[Math.min(low + 1, sorted.length - 1)];
        return share >= 0.5 ? to - (to - from) * (1 - share) : from + (to - from) * share;
    }

    /** The columns whose p-value is below a limit: by false positives, false discoveries, or errors of the family. */
    public static Estimator significant(EstimatorAttributes f) {
        return significant(f, f.type().substring("Select".length()).toLowerCase(Locale.ROOT), f.number("alpha", 0.05));
    }

    /** The columns that the selector of a mode keeps, with the parameter of that selector. */
    public static Estimator generic(EstimatorAttributes f) {
        String mode = f.text("mode", "percentile");
        if (mode.equals("k_best")) {
            return FeatureSelector.kBest(f, f.any("param"));
        }
        double parameter = f.number("param", 1e-5);
        return switch (mode) {
            case "percentile" -> percentile(f, parameter);
            case "fpr", "fdr", "fwe" -> significant(f, mode, parameter);
            default -> throw f.unsupported("mode");
        };
    }

    private static Estimator significant(EstimatorAttributes f, String mode, double alpha) {
        double[] p = f.doubles("pvalues_");
        double limit = alpha;
        boolean reached = false;
        if (mode.equals("fwe")) {
            limit = alpha / p.length;
        } else if (mode.equals("fdr")) {
            double[] sorted = p.clone();
            Arrays.sort(sorted);
            limit = Double.NEGATIVE_INFINITY;
            reached = true;
            for (int i = 0; i < sorted.length; i++) {
                limit = sorted[i] <= alpha / sorted.length * (i + 1) ? Math.max(limit, sorted[i]) : limit;
            }
        }
        List<Integer> kept = new ArrayList<>();
        for (int i = 0; i < p.length; i++) {
            if (reached ? p[i] <= limit : p[i] < limit) {
                kept.add(i);
            }
        }
        return new FeatureSelector(f.type(), p.length, MatrixOps.ints(kept));
    }
}
