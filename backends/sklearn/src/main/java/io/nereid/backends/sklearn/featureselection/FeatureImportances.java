// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.featureselection;

import io.nereid.backends.sklearn.boosting.Boosters;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PyGlobal;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The importance of each feature for a fitted estimator: the attribute {@code coef_} where it has one, else
 * {@code feature_importances_}, which trees and their ensembles compute from the impurities of their nodes. Stateless.
 */
final class FeatureImportances {
    private static final String COEFFICIENTS = "coef_";
    private static final String IMPORTANCES = "feature_importances_";

    private FeatureImportances() {}

    /**
     * The importances, one row for each output of a linear model.
     *
     * @param getter {@code auto}, or the path of an attribute
     */
    static double[][] of(EstimatorAttributes selector, EstimatorAttributes estimator, String getter) {
        EstimatorAttributes owner = estimator;
        String attribute = getter;
        if (getter.contains(".")) {
            attribute = getter.substring(getter.lastIndexOf('.') + 1);
            owner = owner(selector, estimator, getter.substring(0, getter.lastIndexOf('.')));
        }
        double[][] rows = switch (attribute) {
            case "auto" -> {
                double[][] own = coefficients(owner);
                double[] importances = own == null ? importances(owner) : null;
                yield own != null ? own : importances == null ? null : new double[][] {importances};
            }
            case COEFFICIENTS -> coefficients(owner);
            case IMPORTANCES -> {
                double[] importances = importances(owner);
                yield importances == null ? null : new double[][] {importances};
            }
            default -> owner.any(attribute) instanceof NdArray a ? rows(a) : null;
        };
        if (rows == null || rows.length == 0) {
            throw UnsupportedModel.unsupported(selector.path() + " of the importances of a " + owner.path()
                    + " is not supported (importance_getter='" + shortened(getter) + "')");
        }
        return rows;
    }

    private static String shortened(String text) {
        return text.length() > 40 ? text.substring(0, 40) + "…" : text;
    }

    /** The estimator at a path such as {@code named_steps.model} or {@code best_estimator_}. */
    private static EstimatorAttributes owner(EstimatorAttributes selector, EstimatorAttributes estimator, String path) {
        EstimatorAttributes now = estimator;
        String[] names = path.split("\\.", -1);
        for (int i = 0; i < names.length; i++) {
            Object next = null;
            if (names[i].equals("named_steps") && i + 1 < names.length) {
                i++;
                for (Object step : now.list("steps")) {
                    List<Object> pair = EstimatorAttributes.asList(step);
                    next = names[i].equals(pair.get(0)) ? pair.get(1) : next;
                }
            } else {
                next = now.any(names[i]);
            }
            if (!(next instanceof PyObject object)) {
                throw selector.unsupported("importance_getter");
            }
            now = new EstimatorAttributes(object);
        }
        return now;
    }

    private static double[][] rows(NdArray a) {
        double[] all = a.doubles();
        int width = a.rank() == 2 ? a.dim(1) : all.length;
        double[][] rows = new double[a.rank() == 2 ? a.dim(0) : 1][];
        for (int r = 0; r < rows.length; r++) {
            rows[r] = Arrays.copyOfRange(all, r * width, (r + 1) * width);
        }
        return rows;
    }

    private static double @Nullable [][] coefficients(EstimatorAttributes f) {
        if (f.has(COEFFICIENTS)) {
            return rows(f.array(COEFFICIENTS));
        }
        if (f.text("kernel", "").equals("linear") && f.has("support_vectors_")) {
            double[][] vectors = rows(f.array("support_vectors_"));
            double[][] weights = rows(f.array("dual_coef_"));
            if (weights.length != 1 || vectors.length == 0 || weights[0].length != vectors.length) {
                throw UnsupportedModel.unsupported(f.path() + " of several classes has no importances here");
            }
            double[] sum = new double[vectors[0].length];
            for (int v = 0; v < vectors.length; v++) {
                for (int i = 0; i < sum.length; i++) {
                    sum[i] += weights[0][v] * vectors[v][i];
                }
            }
            return new double[][] {sum};
        }
        return null;
    }

    private static double @Nullable [] importances(EstimatorAttributes f) {
        if (Boosters.has(f.object())) {
            return Boosters.importances(f);
        }
        if (f.has(IMPORTANCES)) {
            return f.doubles(IMPORTANCES);
        }
        if (f.any("tree_") instanceof PyObject tree) {
            return tree(new EstimatorAttributes(tree), true);
        }
        if (!f.has("estimators_")) {
            return null;
        }
        List<Object> members = f.list("estimators_");
        boolean adaptive = f.type().startsWith("AdaBoost");
        boolean gradual = f.type().startsWith("GradientBoosting");
        double[] weights = adaptive ? f.doubles("estimator_weights_") : new double[0];
        double[] sum = null;
        double total = 0;
        for (int m = 0; m < members.size(); m++) {
            EstimatorAttributes member = new EstimatorAttributes(EstimatorAttributes.asObject(members.get(m)));
            double[] one = member.any("tree_") instanceof PyObject tree
                    ? tree(new EstimatorAttributes(tree), !gradual)
                    : adaptive ? importances(member) : null;
            if (one == null) {
                return null;
            }
            double weight = !adaptive ? 1 : m < weights.length ? weights[m] : 0;
            sum = sum == null ? new double[one.length] : sum;
            // Trees of a single node count in no mean.
            if (adaptive || nodes(member) > 1) {
                for (int i = 0; i < sum.length && i < one.length; i++) {
                    sum[i] += weight * one[i];
                }
                total += weight;
            }
        }
        if (sum == null || total == 0) {
            return sum;
        }
        double all = 0;
        for (int i = 0; i < sum.length; i++) {
            sum[i] /= total;
            all += sum[i];
        }
        for (int i = 0; !adaptive && i < sum.length; i++) {
            sum[i] /= all;
        }
        return sum;
    }

    private static int nodes(EstimatorAttributes member) {
        return new EstimatorAttributes(member.object("tree_")).array("nodes").count();
    }

    /** The total decrease of the impurity by splits at each feature. */
    private static double[] tree(EstimatorAttributes tree, boolean normalised) {
        NdArray nodes = tree.array("nodes");
        if (!tree.object().type().equals(new PyGlobal("sklearn.tree._tree", "Tree"))
                || tree.object().arguments().isEmpty()
                || !(tree.object().arguments().get(0) instanceof Number features)
                || nodes.count() == 0) {
            throw UnsupportedModel.unsupported(tree.path() + " is not a supported tree");
        }
        int[] left = nodes.ints("left_child");
        int[] right = nodes.ints("right_child");
        int[] feature = nodes.ints("feature");
        double[] impurity = nodes.doubles("impurity");
        double[] samples = nodes.doubles("weighted_n_node_samples");
        double[] decrease = new double[Math.min(1 << 24, Math.max(0, features.intValue()))];
        for (int i = 0; i < left.length; i++) {
            if (left[i] != -1) {
                decrease[feature[i]] += samples[i] * impurity[i]
                        - samples[left[i]] * impurity[left[i]]
                        - samples[right[i]] * impurity[right[i]];
            }
        }
        double sum = 0;
        for (int i = 0; i < decrease.length; i++) {
            decrease[i] /= samples[0];
            sum += decrease[i];
        }
        for (int i = 0; normalised && sum > 0 && i < decrease.length; i++) {
            decrease[i] /= sum;
        }
        return decrease;
    }

    /** The importance of each feature over all outputs, by a vector norm; the absolute value for one output. */
    static double[] norm(double[][] rows, double order) {
        double[] norms = new double[rows[0].length];
        for (int i = 0; i < norms.length; i++) {
            double sum = 0;
            for (double[] row : rows) {
                double v = Math.abs(row[i]);
                sum = Double.isInfinite(order)
                        ? (order > 0 ? Math.max(sum, v) : row == rows[0] ? v : Math.min(sum, v))
                        : order == 1 ? sum + v : order == 2 ? sum + v * v : sum + Math.pow(v, order);
            }
            norms[i] = order == 1 || Double.isInfinite(order)
                    ? sum
                    : order == 2 ? Math.sqrt(sum) : Math.pow(sum, 1 / order);
        }
        return norms;
    }
}
