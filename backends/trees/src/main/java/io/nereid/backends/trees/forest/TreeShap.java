// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * TreeSHAP: exact Shapley values of a model's raw scores. For trees, the value function is the path-dependent one:
 * where a feature is unknown, a row goes both ways, in the proportion of the training data. This is algorithm 2 of
 * Lundberg, Erion, Lee, "Consistent Individualized Feature Attribution for Tree Ensembles" (2018, arXiv:1802.03888), as
 * in Lundberg et al., "From local explanations to global understanding with explainable AI for trees", Nature Machine
 * Intelligence 2 (2020). For linear models, the values are the terms of the sum, as in the library. Computed in 64
 * bits. Immutable.
 */
public final class TreeShap {
    private final ParsedModel model;
    private final boolean xgboost;
    private final int deepest;
    /** The expected raw score of each output over the training data: the base value. */
    private final double[] base;

    /** Requires trees with covers, a single constant at each leaf, and a bounded depth. */
    public TreeShap(ParsedModel model) {
        this.model = model;
        this.xgboost = model.format().equals(ParsedModel.XGBOOST);
        this.base = model.base().clone();
        int most = 0;
        for (ParsedTree tree : model.trees()) {
            most = Math.max(most, depth(tree));
            base[tree.group()] += mean(tree, tree.nodes() == 0 ? ~0 : 0);
        }
        this.deepest = most;
        float[] weights = model.weights();
        if (weights != null) {
            for (int o = 0; o < base.length; o++) {
                base[o] += weights[model.features() * model.outputs() + o];
            }
        }
    }

    /** Steps from the root of a tree to its deepest leaf; iterative, as the tree may be too deep for recursion. */
    public static int depth(ParsedTree tree) {
        int[] depths = new int[tree.nodes()];
        int[] open = new int[tree.nodes() + 1];
        int count = 0;
        int most = 0;
        if (tree.nodes() > 0) {
            open[count++] = 0;
            most = 1;
        }
        while (count > 0) {
            int node = open[--count];
            for (int side = 0; side < 2; side++) {
                int child = side == 0 ? tree.left()[node] : tree.right()[node];
                if (child >= 0) {
                    depths[child] = depths[node] + 1;
                    most = Math.max(most, depths[child] + 1);
                    open[count++] = child;
                }
            }
        }
        return most;
    }

    /** The expected value below a node over the training data. */
    private static double mean(ParsedTree tree, int at) {
        if (at < 0) {
            return tree.values()[~at];
        }
        int left = tree.left()[at];
        int right = tree.right()[at];
        return share(tree, at, left) * mean(tree, left) + share(tree, at, right) * mean(tree, right);
    }

    private static double cover(ParsedTree tree, int at) {
        ParsedTree.Cover cover = tree.cover();
        if (cover == null) {
            throw new IllegalStateException("a tree without covers");
        }
        return at < 0 ? cover.leaves()[~at] : cover.nodes()[at];
    }

    /** The fraction of the training data at a node that went to a child. */
    private static double share(ParsedTree tree, int node, int child) {
        double all = cover(tree, node);
        // A node without data has the fraction 0 itself, so the fraction of its children does not matter.
        return all == 0 ? 0 : cover(tree, child) / all;
    }

    /** The number of values per row: {@code features + 1} for each output. */
    public int width() {
        return (model.features() + 1) * model.outputs();
    }

    ParsedModel model() {
        return model;
    }

    /** The working memory of a computation; it can be reused by the next one. */
    public Path newPath() {
        int levels = Math.min(deepest, model.features()) + 2;
        return new Path((deepest + 2) * (levels + 1));
    }

    /**
     * Computes the SHAP values of a row.
     *
     * @param row its feature values
     * @param to by output the contributions of the features, then the base value; overwritten
     * @param stopped polled between trees; when it returns true, the result is incomplete
     */
    public void explain(double[] row, double[] to, Path path, BooleanSupplier stopped) {
        int features = model.features();
        int outputs = model.outputs();
        java.util.Arrays.fill(to, 0, width(), 0);
        float[] weights = model.weights();
        for (int o = 0; o < outputs; o++) {
            int at = o * (features + 1);
            to[at + features] = base[o];
            for (int f = 0; f < features && weights != null; f++) {
                float x = (float) row[f];
                to[at + f] = Float.isNaN(x) ? 0 : (double) x * weights[f * outputs + o];
            }
        }
        for (ParsedTree tree : model.trees()) {
            if (tree.nodes() > 0) {
                if (stopped.getAsBoolean()) {
                    return;
                }
                path.begin(row, to, tree.group() * (features + 1), tree);
                descend(path, 0, 0, 0, 1, 1, -1);
            }
        }
    }

    /**
     * Visits a node: extends the path by the split above it, then either adds the contributions of a leaf or visits
     * both children.
     *
     * @param zero the fraction of the training data that takes this branch when the feature is unknown
     * @param one 1 when the row takes this branch when the feature is known, else 0
     */
    private void descend(Path p, int at, int above, int length, double zero, double one, int feature) {
        ParsedTree tree = p.tree();
        int from = above + length;
        p.copy(above, from, length);
        p.extend(from, length, zero, one, feature);
        if (at < 0) {
            double value = tree.values()[~at];
            for (int i = 1; i <= length; i++) {
                p.to[p.first + p.features[from + i]] +=
                        p.sumWithout(from, length, i) * (p.ones[from + i] - p.zeros[from + i]) * value;
            }
            return;
        }
        int split = tree.feature()[at];
        boolean left = goesLeft(tree, at, p.row[split]);
        int hot = left ? tree.left()[at] : tree.right()[at];
        int cold = left ? tree.right()[at] : tree.left()[at];
        double zeroBefore = 1;
        double oneBefore = 1;
        int next = length + 1;
        // A feature counts once: when it was split on above, that entry is removed and its fractions are multiplied in.
        for (int i = 1; i <= length; i++) {
            if (p.features[from + i] == split) {
                zeroBefore = p.zeros[from + i];
                oneBefore = p.ones[from + i];
                p.unwind(from, length, i);
                next--;
                break;
            }
        }
        descend(p, hot, from, next, zeroBefore * share(tree, at, hot), oneBefore, split);
        descend(p, cold, from, next, zeroBefore * share(tree, at, cold), 0, split);
    }

    /** Whether a value goes left at a node. Must agree with {@link FeatureKeys} and {@link Forest}. */
    private boolean goesLeft(ParsedTree tree, int node, double value) {
        byte rule = tree.rule()[node];
        int[] @Nullable [] sets = tree.categories();
        int[] set = sets == null ? null : sets[node];
        if (set != null) {
            return member(tree, node, rule, set, value);
        }
        double x = xgboost ? (float) value : Math.abs(value) <= FeatureKeys.ZERO ? 0 : value;
        boolean missing = Double.isNaN(x);
        switch (rule) {
            case FeatureKeys.NAN_LEFT:
                if (missing) {
                    return true;
                }
                break;
            case FeatureKeys.NAN_RIGHT:
                if (missing) {
                    return false;
                }
                break;
            case FeatureKeys.ZERO_LEFT:
                if (missing || x == 0) {
                    return true;
                }
                break;
            case FeatureKeys.ZERO_RIGHT:
                if (missing || x == 0) {
                    return false;
                }
                break;
            default:
                x = missing ? 0 : x;
        }
        return xgboost ? x < (float) tree.threshold()[node] : x <= tree.threshold()[node];
    }

    private static boolean member(ParsedTree tree, int node, byte rule, int[] set, double value) {
        boolean lightgbm = rule == FeatureKeys.CATEGORY_OR_NONE;
        if (Double.isNaN(value)) {
            return !lightgbm && tree.missingLeft()[node];
        }
        int category = !lightgbm && (value < 0 || value >= 1 << 24) ? -1 : (int) value;
        boolean in = category >= 0 && category >> 5 < set.length && (set[category >> 5] >>> (category & 31) & 1) != 0;
        return in == lightgbm;
    }

    /**
     * The unique features on the path to a node, as in the paper: for each feature the fraction of the training data
     * that follows the path when it is unknown (zeros), and whether the row follows it when known (ones), and the
     * permutation weights of subsets by their size. Each recursion level has its own range of the arrays, after that of
     * the level above, so that returning restores it. Confined to one computation at a time.
     */
    public static final class Path {
        private final int[] features;
        private final double[] zeros;
        private final double[] ones;
        private final double[] weights;
        private double[] row = {};
        private double[] to = {};
        private int first;
        private @Nullable ParsedTree tree;

        private Path(int size) {
            features = new int[size];
            zeros = new double[size];
            ones = new double[size];
            weights = new double[size];
        }

        private void begin(double[] values, double[] contributions, int at, ParsedTree of) {
            row = values;
            to = contributions;
            first = at;
            tree = of;
        }

        private ParsedTree tree() {
            return java.util.Objects.requireNonNull(tree);
        }

        private void copy(int above, int from, int length) {
            System.arraycopy(features, above, features, from, length);
            System.arraycopy(zeros, above, zeros, from, length);
            System.arraycopy(ones, above, ones, from, length);
            System.arraycopy(weights, above, weights, from, length);
        }

        /** EXTEND of the paper: grows the subsets by one feature. */
        private void extend(int from, int length, double zero, double one, int feature) {
            features[from + length] = feature;
            zeros[from + length] = zero;
            ones[from + length] = one;
            weights[from + length] = length == 0 ? 1 : 0;
            double size = length + 1;
            for (int i = length - 1; i >= 0; i--) {
                double weight = weights[from + i];
                weights[from + i + 1] += one * weight * (i + 1) / size;
                weights[from + i] = zero * weight * (length - i) / size;
            }
        }

        /** UNWIND of the paper: undoes the extension by one feature, in any position. */
        private void unwind(int from, int length, int index) {
            double one = ones[from + index];
            double zero = zeros[from + index];
            double next = weights[from + length];
            double size = length + 1;
            for (int j = length - 1; j >= 0; j--) {
                if (one != 0) {
                    double old = weights[from + j];
                    weights[from + j] = next * size / ((j + 1) * one);
                    next = old - weights[from + j] * zero * (length - j) / size;
                } else if (zero != 0) {
                    weights[from + j] = weights[from + j] * size / (zero * (length - j));
                } else {
                    weights[from + j] = 0;
                }
            }
            for (int j = index; j < length; j++) {
                features[from + j] = features[from + j + 1];
                zeros[from + j] = zeros[from + j + 1];
                ones[from + j] = ones[from + j + 1];
            }
        }

        /** The sum of the weights after {@link #unwind}, without changing the path. */
        private double sumWithout(int from, int length, int index) {
            double one = ones[from + index];
            double zero = zeros[from + index];
            double next = weights[from + length];
            double size = length + 1;
            double sum = 0;
            for (int j = length - 1; j >= 0; j--) {
                if (one != 0) {
                    double weight = next * size / ((j + 1) * one);
                    sum += weight;
                    next = weights[from + j] - weight * zero * (length - j) / size;
                } else if (zero != 0) {
                    sum += weights[from + j] * size / (zero * (length - j));
                }
            }
            return sum;
        }
    }
}
