// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MultiTargetClassifier;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.backends.sklearn.tree.DecisionTree;
import io.nereid.backends.sklearn.tree.DecisionTrees;
import java.util.ArrayList;
import java.util.List;

/**
 * Decision trees, random forests and extra trees ({@code DecisionTree*}, {@code ExtraTree*}, {@code RandomForest*},
 * {@code ExtraTrees*}): the average over one or several trees. Stateless.
 */
public final class RandomForest {
    private RandomForest() {}

    static List<DecisionTree> trees(EstimatorAttributes f) {
        if (f.has("tree_")) {
            return List.of(DecisionTree.of(f));
        }
        List<DecisionTree> trees = new ArrayList<>();
        for (Object estimator : f.list("estimators_")) {
            trees.add(DecisionTree.of(new EstimatorAttributes(EstimatorAttributes.asObject(estimator))));
        }
        if (trees.isEmpty()) {
            throw UnsupportedModel.unsupported(f.path() + " has no trees");
        }
        for (DecisionTree tree : trees) {
            if (tree.width() != trees.get(0).width()
                    || tree.features() != trees.get(0).features()) {
                throw UnsupportedModel.corrupt(f.path() + " has trees of different sizes");
            }
        }
        return trees;
    }

    public static Estimator classifier(EstimatorAttributes f) {
        return f.integer("n_outputs_", 1) == 1 ? new Classes(f, trees(f)) : new MultiTarget(f, trees(f));
    }

    public static Estimator regressor(EstimatorAttributes f) {
        return new Numbers(f, trees(f));
    }

    /** The mean of the trees' class probabilities. Immutable. */
    private static final class Classes extends Classifier {
        private final DecisionTrees trees;

        Classes(EstimatorAttributes f, List<DecisionTree> trees) {
            super(f.type(), trees.get(0).features(), ClassLabels.of(f.array("classes_")));
            this.trees = new DecisionTrees(trees);
            if (trees.get(0).width() != labels().count()) {
                throw UnsupportedModel.corrupt(f.path() + " has trees for "
                        + trees.get(0).width() + " classes (expected: " + labels().count() + ")");
            }
        }

        @Override
        public boolean quick() {
            return trees.trees().size() <= 20;
        }

        @Override
        public boolean hasProba() {
            return true;
        }

        @Override
        public DataTable proba(DataTable table) {
            float[] x = DecisionTree.floats(type(), table);
            int classes = labels().count();
            DataTable result = DataTable.of(table.rows(), classes);
            double[] y = result.values();
            trees.forEachLeaf(x, table.rows(), table.columns(), (index, first, rows, leaves) -> {
                DecisionTree tree = trees.trees().get(index);
                for (int r = 0; r < rows; r++) {
                    double sum = 0;
                    for (int c = 0; c < classes; c++) {
                        sum += tree.value(leaves[r], c);
                    }
                    int at = (first + r) * classes;
                    for (int c = 0; c < classes; c++) {
                        double value = tree.value(leaves[r], c);
                        y[at + c] += sum == 0 ? value : value / sum;
                    }
                }
            });
            for (int i = 0; i < y.length; i++) {
                y[i] /= trees.trees().size();
            }
            return result;
        }
    }

    /** The mean of the trees' class probabilities, for several targets. Immutable. */
    private static final class MultiTarget extends MultiTargetClassifier {
        private final DecisionTrees trees;
        /**
         * Values per target at a leaf: the number of classes of the target with most classes, padded for the others.
         */
        private final int most;

        MultiTarget(EstimatorAttributes f, List<DecisionTree> trees) {
            super(f.type(), trees.get(0).features(), labels(f));
            this.trees = new DecisionTrees(trees);
            this.most = trees.get(0).width() / Math.max(1, trees.get(0).outputs());
            int greatest = labels().stream().mapToInt(ClassLabels::count).max().orElse(0);
            if (trees.get(0).outputs() != labels().size() || most < greatest) {
                throw UnsupportedModel.corrupt(f.path() + " has trees for "
                        + trees.get(0).outputs() + " targets (expected: " + labels().size() + ")");
            }
        }

        @Override
        public DataTable proba(DataTable table) {
            float[] x = DecisionTree.floats(type(), table);
            int width = width(PredictMethod.PREDICT_PROBA);
            DataTable result = DataTable.of(table.rows(), width);
            double[] y = result.values();
            trees.forEachLeaf(x, table.rows(), table.columns(), (index, first, rows, leaves) -> {
                for (int r = 0; r < rows; r++) {
                    add(trees.trees().get(index), leaves[r], y, (first + r) * width);
                }
            });
            for (int i = 0; i < y.length; i++) {
                y[i] /= trees.trees().size();
            }
            return result;
        }

        private void add(DecisionTree tree, int leaf, double[] y, int from) {
            int to = from;
            for (int o = 0; o < labels().size(); o++) {
                int classes = labels().get(o).count();
                double sum = 0;
                for (int c = 0; c < classes; c++) {
                    sum += tree.value(leaf, o * most + c);
                }
                for (int c = 0; c < classes; c++) {
                    y[to++] += sum == 0 ? 0 : tree.value(leaf, o * most + c) / sum;
                }
            }
        }
    }

    /** The mean of the trees' predictions. Immutable. */
    private static final class Numbers extends Regressor {
        private final DecisionTrees trees;
        private final int outputs;

        Numbers(EstimatorAttributes f, List<DecisionTree> trees) {
            super(
                    f.type(),
                    trees.get(0).features(),
                    trees.get(0).outputs() == 1 ? 0 : trees.get(0).outputs());
            this.trees = new DecisionTrees(trees);
            this.outputs = trees.get(0).width();
        }

        @Override
        public boolean quick() {
            return trees.trees().size() <= 20;
        }

        @Override
        public DataTable predict(DataTable table) {
            float[] x = DecisionTree.floats(type(), table);
            DataTable result = DataTable.of(table.rows(), outputs);
            double[] y = result.values();
            trees.forEachLeaf(x, table.rows(), table.columns(), (index, first, rows, leaves) -> {
                DecisionTree tree = trees.trees().get(index);
                for (int r = 0; r < rows; r++) {
                    for (int o = 0; o < outputs; o++) {
                        y[(first + r) * outputs + o] += tree.value(leaves[r], o);
                    }
                }
            });
            for (int i = 0; i < y.length; i++) {
                y[i] /= trees.trees().size();
            }
            return result;
        }
    }
}
