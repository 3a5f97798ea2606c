// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.backends.sklearn.tree.DecisionTree;
import io.nereid.backends.sklearn.tree.DecisionTrees;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code GradientBoostingClassifier} and {@code GradientBoostingRegressor}: an initial estimator plus the sum of
 * regression trees, each scaled by the learning rate. Stateless.
 */
public final class GradientBoosting {
    private static final double FLOAT_EPSILON = 1.1920928955078125e-7;
    private static final double DOUBLE_EPSILON = 2.220446049250313e-16;

    private GradientBoosting() {}

    /** The raw predictions. Immutable. */
    private static final class Scores implements RawPredictions {
        private final String type;
        /** By stage and class. */
        private final DecisionTrees trees;

        private final double rate;
        private final @Nullable Estimator first;
        private final boolean classes;
        private final boolean exponential;
        /**
         * Whether the initial raw predictions are centred over the classes, as versions with {@code sklearn._loss} do.
         */
        private final boolean recent;

        private final int width;

        Scores(EstimatorAttributes f, Estimator.Factory factory, boolean classes) {
            type = f.type();
            this.classes = classes;
            recent = f.any("_loss") instanceof PyObject loss && loss.type().isOf("sklearn._loss");
            exponential = f.text("loss", "").equals("exponential");
            rate = f.number("learning_rate");
            NdArray grid = f.array("estimators_");
            if (grid.rank() != 2 || grid.count() == 0) {
                throw UnsupportedModel.corrupt(f.path() + " has no trees");
            }
            width = grid.dim(1);
            Object[] cells = grid.values();
            List<DecisionTree> all = new ArrayList<>();
            for (Object cell : cells) {
                all.add(DecisionTree.of(new EstimatorAttributes(EstimatorAttributes.asObject(cell))));
            }
            trees = new DecisionTrees(all);
            Object init = f.required("init_");
            first = init.equals("zero") ? null : factory.build(init);
            for (DecisionTree tree : all) {
                if (tree.width() != 1 || tree.features() != features()) {
                    throw UnsupportedModel.corrupt(f.path() + " has trees of different sizes");
                }
            }
        }

        @Override
        public int width() {
            return width;
        }

        @Override
        public int inputs(EstimatorAttributes f) {
            return features();
        }

        @Override
        public double scale() {
            return exponential ? 2 : 1;
        }

        int features() {
            return trees.trees().get(0).features();
        }

        @Override
        public DataTable scores(DataTable table) {
            float[] x = DecisionTree.floats(type, table);
            DataTable result = first(table);
            double[] y = result.values();
            trees.forEachLeaf(x, table.rows(), table.columns(), (index, from, rows, leaves) -> {
                DecisionTree tree = trees.trees().get(index);
                int at = from * width + index % width;
                for (int r = 0; r < rows; r++) {
                    y[at + r * width] += rate * tree.value(leaves[r], 0);
                }
            });
            return result;
        }

        /** The raw predictions of the initial estimator: for classifiers the inverse link of its probabilities. */
        private DataTable first(DataTable table) {
            DataTable result = DataTable.of(table.rows(), width);
            if (first == null) {
                return result;
            }
            double[] y = result.values();
            if (!classes) {
                System.arraycopy(first.checked(PredictMethod.PREDICT, table).values(), 0, y, 0, y.length);
                return result;
            }
            DataTable proba = first.checked(PredictMethod.PREDICT_PROBA, table);
            double epsilon = recent ? DOUBLE_EPSILON : FLOAT_EPSILON;
            for (int r = 0; r < table.rows(); r++) {
                double mean = 0;
                for (int k = 0; k < width; k++) {
                    double p = proba.at(r, width == 1 ? 1 : k);
                    p = Math.min(Math.max(p, epsilon), 1 - epsilon);
                    double score = width > 1 ? Math.log(p) : Math.log(p / (1 - p)) * (exponential ? 0.5 : 1);
                    y[r * width + k] = score;
                    mean += score / width;
                }
                for (int k = 0; recent && width > 1 && k < width; k++) {
                    y[r * width + k] -= mean;
                }
            }
            return result;
        }
    }

    public static Estimator classifier(EstimatorAttributes f, Estimator.Factory factory) {
        return new RawPredictions.Classes(f, new Scores(f, factory, true));
    }

    public static Estimator regressor(EstimatorAttributes f, Estimator.Factory factory) {
        return new Numbers(f, new Scores(f, factory, false));
    }

    /** Immutable. */
    private static final class Numbers extends Regressor {
        private final Scores scores;

        Numbers(EstimatorAttributes f, Scores scores) {
            super(f.type(), scores.features(), 0);
            this.scores = scores;
        }

        @Override
        public DataTable predict(DataTable table) {
            return scores.scores(table);
        }
    }
}
