// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;

/**
 * Decision trees, random forests and extra trees ({@code DecisionTree*}, {@code ExtraTree*}, {@code RandomForest*},
 * {@code ExtraTrees*}): the average over one or several trees. Stateless.
 */
final class Forest {
    private Forest() {}

    static List<Tree> trees(Fields f) {
        if (f.has("tree_")) {
            return List.of(Tree.of(f));
        }
        List<Tree> trees = new ArrayList<>();
        for (Object estimator : f.list("estimators_")) {
            trees.add(Tree.of(new Fields(Fields.asObject(estimator))));
        }
        if (trees.isEmpty()) {
            throw Refusal.unsupported(f.path() + " has no trees");
        }
        for (Tree tree : trees) {
            if (tree.width() != trees.get(0).width()
                    || tree.features() != trees.get(0).features()) {
                throw Refusal.corrupt(f.path() + " has trees of different sizes");
            }
        }
        return trees;
    }

    static Estimator classifier(Fields f) {
        return f.integer("n_outputs_", 1) == 1 ? new Classes(f, trees(f)) : new MultiTarget(f, trees(f));
    }

    static Estimator regressor(Fields f) {
        return new Numbers(f, trees(f));
    }

    /** The mean of the trees' class probabilities. Immutable. */
    private static final class Classes extends Classifier {
        private final List<Tree> trees;

        Classes(Fields f, List<Tree> trees) {
            super(f.type(), trees.get(0).features(), Labels.of(f.array("classes_")));
            this.trees = trees;
            if (trees.get(0).width() != labels().count()) {
                throw Refusal.corrupt(f.path() + " has trees for "
                        + trees.get(0).width() + " classes (expected: " + labels().count() + ")");
            }
        }

        @Override
        boolean quick() {
            return trees.size() <= 20;
        }

        @Override
        boolean hasProba() {
            return true;
        }

        @Override
        Table proba(Table table) {
            float[] x = Tree.floats(type(), table);
            int classes = labels().count();
            Table result = Table.of(table.rows(), classes);
            double[] y = result.values();
            for (int r = 0; r < table.rows(); r++) {
                for (Tree tree : trees) {
                    int leaf = tree.leaf(x, r * table.columns());
                    double sum = 0;
                    for (int c = 0; c < classes; c++) {
                        sum += tree.value(leaf, c);
                    }
                    for (int c = 0; c < classes; c++) {
                        y[r * classes + c] += sum == 0 ? tree.value(leaf, c) : tree.value(leaf, c) / sum;
                    }
                }
                for (int c = 0; c < classes; c++) {
                    y[r * classes + c] /= trees.size();
                }
            }
            return result;
        }
    }

    /** The mean of the trees' class probabilities, for several targets. Immutable. */
    private static final class MultiTarget extends MultiTargetClassifier {
        private final List<Tree> trees;
        /**
         * Values per target at a leaf: the number of classes of the target with most classes, padded for the others.
         */
        private final int most;

        MultiTarget(Fields f, List<Tree> trees) {
            super(f.type(), trees.get(0).features(), labels(f));
            this.trees = trees;
            this.most = trees.get(0).width() / Math.max(1, trees.get(0).outputs());
            int greatest = labels().stream().mapToInt(Labels::count).max().orElse(0);
            if (trees.get(0).outputs() != labels().size() || most < greatest) {
                throw Refusal.corrupt(f.path() + " has trees for "
                        + trees.get(0).outputs() + " targets (expected: " + labels().size() + ")");
            }
        }

        @Override
        Table proba(Table table) {
            float[] x = Tree.floats(type(), table);
            int width = width(Method.PREDICT_PROBA);
            Table result = Table.of(table.rows(), width);
            double[] y = result.values();
            for (int r = 0; r < table.rows(); r++) {
                for (Tree tree : trees) {
                    add(tree, tree.leaf(x, r * table.columns()), y, r * width);
                }
                for (int c = 0; c < width; c++) {
                    y[r * width + c] /= trees.size();
                }
            }
            return result;
        }

        private void add(Tree tree, int leaf, double[] y, int from) {
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
        private final List<Tree> trees;
        private final int outputs;

        Numbers(Fields f, List<Tree> trees) {
            super(
                    f.type(),
                    trees.get(0).features(),
                    trees.get(0).outputs() == 1 ? 0 : trees.get(0).outputs());
            this.trees = trees;
            this.outputs = trees.get(0).width();
        }

        @Override
        boolean quick() {
            return trees.size() <= 20;
        }

        @Override
        Table predict(Table table) {
            float[] x = Tree.floats(type(), table);
            Table result = Table.of(table.rows(), outputs);
            double[] y = result.values();
            for (int r = 0; r < table.rows(); r++) {
                for (Tree tree : trees) {
                    int leaf = tree.leaf(x, r * table.columns());
                    for (int c = 0; c < outputs; c++) {
                        y[r * outputs + c] += tree.value(leaf, c);
                    }
                }
                for (int c = 0; c < outputs; c++) {
                    y[r * outputs + c] /= trees.size();
                }
            }
            return result;
        }
    }
}
