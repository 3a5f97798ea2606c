// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.backends.sklearn.preprocessing.CategoryIndex;
import io.nereid.backends.sklearn.tree.PackedTrees;
import io.nereid.backends.sklearn.tree.PackedTrees.TreeNodes;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code HistGradientBoostingClassifier} and {@code HistGradientBoostingRegressor}: a baseline plus the sum of trees,
 * with native support of missing values and categorical features. Stateless.
 */
public final class HistGradientBoosting {
    private HistGradientBoosting() {}

    /** One tree ({@code TreePredictor}). Immutable. */
    private static final class HistogramTree {
        private final double[] value;
        private final int[] feature;
        private final double[] threshold;
        private final boolean[] missingLeft;
        private final int[] left;
        private final int[] right;
        private final boolean[] leaf;
        private final boolean[] categorical;
        private final int[] bitset;
        private final double[] bits;

        HistogramTree(EstimatorAttributes f, int features) {
            NdArray nodes = f.array("nodes");
            value = nodes.doubles("value");
            feature = nodes.ints("feature_idx");
            threshold = nodes.doubles(nodes.hasField("num_threshold") ? "num_threshold" : "threshold");
            missingLeft = flags(nodes, "missing_go_to_left");
            left = nodes.ints("left");
            right = nodes.ints("right");
            leaf = flags(nodes, "is_leaf");
            categorical = flags(nodes, "is_categorical");
            bitset = nodes.hasField("bitset_idx") ? nodes.ints("bitset_idx") : new int[value.length];
            bits = f.has("raw_left_cat_bitsets") ? f.doubles("raw_left_cat_bitsets") : new double[0];
            if (value.length == 0) {
                throw UnsupportedModel.corrupt(f.path() + " has no nodes");
            }
            for (int i = 0; i < value.length; i++) {
                boolean right = leaf[i]
                        || (left[i] > i
                                && left[i] < value.length
                                && this.right[i] > i
                                && this.right[i] < value.length
                                && feature[i] >= 0
                                && feature[i] < features
                                && (!categorical[i] || (bitset[i] >= 0 && bitset[i] < bits.length / 8)));
                if (!right) {
                    throw UnsupportedModel.corrupt(f.path() + " has a node " + i + " with invalid children");
                }
            }
        }

        /** Returns whether a split is by categories. */
        boolean hasCategories() {
            for (int i = 0; i < leaf.length; i++) {
                if (categorical[i] && !leaf[i]) {
                    return true;
                }
            }
            return false;
        }

        /** The tree's arrays, to be packed; without splits by categories. */
        TreeNodes nodesToPack() {
            int[] child = left.clone();
            for (int i = 0; i < child.length; i++) {
                child[i] = leaf[i] ? -1 : child[i];
            }
            return new TreeNodes(child, right, feature, threshold, missingLeft);
        }

        private static boolean[] flags(NdArray nodes, String field) {
            boolean[] flags = new boolean[nodes.count()];
            if (nodes.hasField(field)) {
                int[] values = nodes.ints(field);
                for (int i = 0; i < flags.length; i++) {
                    flags[i] = values[i] != 0;
                }
            }
            return flags;
        }

        double predict(double[] x, int from, HistogramScores scores) {
            int node = 0;
            while (!leaf[node]) {
                double v = x[from + feature[node]];
                boolean goLeft;
                if (Double.isNaN(v)) {
                    goLeft = missingLeft[node];
                } else if (categorical[node]) {
                    goLeft = scores.isKnownCategory(feature[node], v) ? in(bitset[node], (int) v) : missingLeft[node];
                } else {
                    goLeft = v <= threshold[node];
                }
                node = goLeft ? left[node] : right[node];
            }
            return value[node];
        }

        /** Whether a category is in the bit set of those that go left: 8 words of 32 bits, for categories below 256. */
        private boolean in(int set, int v) {
            return ((long) bits[set * 8 + (v >> 5)] >> (v & 31) & 1) != 0;
        }
    }

    /** Fewer rows find their leaves one by one: that takes less than to encode them. */
    private static final int FEW_ROWS = 3;

    /** The raw predictions. Immutable. */
    private static final class HistogramScores implements RawPredictions {
        private final String type;
        /** By iteration and class. */
        private final List<HistogramTree> trees = new ArrayList<>();

        /** The trees packed for many rows; null if there are splits by categories. */
        private final @Nullable PackedTrees packed;

        private final double[] baseline;
        private final int features;
        private final int width;
        private final @Nullable Estimator before;
        /** The known categories of each categorical column; null for a numeric column. */
        private final @Nullable CategoryIndex[] categories;

        HistogramScores(EstimatorAttributes f, Estimator.Factory factory) {
            type = f.type();
            width = f.integer("n_trees_per_iteration_", 1);
            before = f.has("_preprocessor") ? factory.build(f.required("_preprocessor")) : null;
            features = before != null ? before.width(PredictMethod.TRANSFORM) : f.integer("_n_features", f.features());
            double[] given = f.doubles("_baseline_prediction");
            baseline = given.length == width ? given : new double[width];
            if (given.length != width && given.length == 1) {
                java.util.Arrays.fill(baseline, given[0]);
            }
            for (Object stage : f.list("_predictors")) {
                List<Object> iteration = EstimatorAttributes.asList(stage);
                if (iteration.size() != width) {
                    throw UnsupportedModel.corrupt(
                            f.path() + " has " + iteration.size() + " trees per iteration (expected: " + width + ")");
                }
                for (Object tree : iteration) {
                    trees.add(new HistogramTree(new EstimatorAttributes(EstimatorAttributes.asObject(tree)), features));
                }
            }
            packed = trees.stream().anyMatch(HistogramTree::hasCategories)
                    ? null
                    : PackedTrees.ofDoubles(
                            trees.stream().map(HistogramTree::nodesToPack).toList());
            categories = categories(f);
        }

        private @Nullable CategoryIndex[] categories(EstimatorAttributes f) {
            @Nullable CategoryIndex[] known = new CategoryIndex[Math.max(features, 0)];
            if (!f.has("_bin_mapper")) {
                return known;
            }
            EstimatorAttributes mapper = new EstimatorAttributes(f.object("_bin_mapper"));
            List<Object> thresholds = mapper.list("bin_thresholds_");
            int[] flags = mapper.has("is_categorical_")
                    ? mapper.array("is_categorical_").ints()
                    : new int[0];
            for (int c = 0; c < known.length && c < flags.length && c < thresholds.size(); c++) {
                if (flags[c] != 0 && thresholds.get(c) instanceof NdArray a) {
                    known[c] = new CategoryIndex(a);
                }
            }
            return known;
        }

        /** Whether the value is a category of the training data; others are handled as missing. */
        boolean isKnownCategory(int column, double v) {
            CategoryIndex c = categories[column];
            return v >= 0 && v < 256 && (c == null || c.find(v, null) >= 0);
        }

        @Override
        public int width() {
            return width;
        }

        @Override
        public @Nullable Estimator before() {
            return before;
        }

        @Override
        public int inputs(EstimatorAttributes f) {
            return f.contains("n_features_in_") ? f.features() : features;
        }

        @Override
        public DataTable scores(DataTable table) {
            DataTable given = before == null ? table : before.checked(PredictMethod.TRANSFORM, table);
            double[] x = given.numbers(type);
            DataTable result = DataTable.of(table.rows(), width);
            double[] y = result.values();
            for (int i = 0; i < y.length; i++) {
                y[i] = baseline[i % width];
            }
            boolean few = table.rows() < FEW_ROWS || packed == null;
            int capacity = few ? table.rows() : PackedTrees.ROWS;
            int[] numbers = new int[few || packed == null ? 0 : capacity * packed.stride()];
            int[] leaves = new int[few ? 0 : capacity];
            for (int first = 0; first < table.rows(); first += capacity) {
                int count = Math.min(capacity, table.rows() - first);
                if (!few && packed != null) {
                    packed.encode(x, first * given.columns(), given.columns(), count, numbers);
                }
                for (int t = 0; t < trees.size(); t++) {
                    HistogramTree tree = trees.get(t);
                    int at = first * width + t % width;
                    boolean found = !few && packed != null && packed.leaves(t, numbers, count, leaves);
                    for (int r = 0; r < count; r++) {
                        y[at + r * width] +=
                                found ? tree.value[leaves[r]] : tree.predict(x, (first + r) * given.columns(), this);
                    }
                }
            }
            return result;
        }
    }

    public static Estimator classifier(EstimatorAttributes f, Estimator.Factory factory) {
        return new RawPredictions.Classes(f, new HistogramScores(f, factory));
    }

    public static Estimator regressor(EstimatorAttributes f, Estimator.Factory factory) {
        boolean exp = List.of("poisson", "gamma").contains(f.text("loss", ""));
        return new Numbers(f, new HistogramScores(f, factory), exp);
    }

    /** Immutable. */
    private static final class Numbers extends Regressor {
        private final HistogramScores scores;
        private final boolean exp;

        @Override
        public @Nullable Estimator before() {
            return scores.before;
        }

        Numbers(EstimatorAttributes f, HistogramScores scores, boolean exp) {
            super(f.type(), scores.inputs(f), 0);
            this.scores = scores;
            this.exp = exp;
        }

        @Override
        public DataTable predict(DataTable table) {
            DataTable result = scores.scores(table);
            for (int i = 0; exp && i < result.values().length; i++) {
                result.values()[i] = Math.exp(result.values()[i]);
            }
            return result;
        }
    }
}
