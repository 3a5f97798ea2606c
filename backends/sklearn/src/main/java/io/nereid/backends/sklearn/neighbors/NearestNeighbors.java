// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neighbors;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MultiTargetClassifier;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;

/**
 * {@code KNeighborsClassifier} and {@code KNeighborsRegressor}. Compares with all training samples (brute force); the
 * tree in the file is not used, because it changes the speed only, not the result. Stateless.
 */
public final class NearestNeighbors {
    private NearestNeighbors() {}

    /** The training samples, how many neighbours count, and how. Immutable. */
    private static final class Samples {
        private final TrainingSamples all;
        private final int k;
        private final boolean byDistance;

        Samples(EstimatorAttributes f) {
            all = TrainingSamples.of(f);
            k = all.neighbours(f, f.integer("n_neighbors", 5));
            byDistance = TrainingSamples.byDistance(f);
        }

        int features() {
            return all.features();
        }

        int count() {
            return all.count();
        }

        /** Finds the k nearest samples of a row, the nearest first, and computes their weights. */
        void nearest(double[] x, int from, int[] found, double[] weights) {
            all.nearest(x, from, found, weights);
            TrainingSamples.weigh(weights, k, byDistance);
        }
    }

    public static Estimator classifier(EstimatorAttributes f) {
        return f.flag("outputs_2d_", false) ? new MultiTarget(f, new Samples(f)) : new Classes(f, new Samples(f));
    }

    public static Estimator regressor(EstimatorAttributes f) {
        return new Numbers(f, new Samples(f));
    }

    /** Votes of the neighbours. Immutable. */
    private static final class Classes extends Classifier {
        private final Samples samples;
        private final int[] y;

        Classes(EstimatorAttributes f, Samples samples) {
            super(f.type(), samples.features(), ClassLabels.of(f.array("classes_")));
            this.samples = samples;
            this.y = f.array("_y").ints();
            for (int v : y) {
                if (v < 0 || v >= labels().count()) {
                    throw UnsupportedModel.corrupt(f.path() + " has a sample whose class does not exist");
                }
            }
            if (y.length != samples.count()) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has " + y.length + " classes for " + samples.count() + " samples");
            }
        }

        @Override
        public boolean hasProba() {
            return true;
        }

        @Override
        public DataTable proba(DataTable table) {
            double[] x = table.finite(type());
            int classes = labels().count();
            DataTable result = DataTable.of(table.rows(), classes);
            int[] found = new int[samples.k];
            double[] weights = new double[samples.k];
            for (int r = 0; r < table.rows(); r++) {
                samples.nearest(x, r * table.columns(), found, weights);
                double sum = 0;
                for (int i = 0; i < found.length; i++) {
                    result.values()[r * classes + y[found[i]]] += weights[i];
                    sum += weights[i];
                }
                for (int c = 0; sum != 0 && c < classes; c++) {
                    result.values()[r * classes + c] /= sum;
                }
            }
            return result;
        }
    }

    private static final class MultiTarget extends MultiTargetClassifier {
        private final Samples samples;
        private final int[] y;

        MultiTarget(EstimatorAttributes f, Samples samples) {
            super(f.type(), samples.features(), labels(f));
            this.samples = samples;
            this.y = f.array("_y").ints();
            int targets = labels().size();
            if (y.length != (long) samples.count() * targets) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has " + y.length + " classes for " + samples.count() + " samples");
            }
            for (int i = 0; i < y.length; i++) {
                if (y[i] < 0 || y[i] >= labels().get(i % targets).count()) {
                    throw UnsupportedModel.corrupt(f.path() + " has a sample whose class does not exist");
                }
            }
        }

        @Override
        public DataTable proba(DataTable table) {
            double[] x = table.finite(type());
            int width = width(PredictMethod.PREDICT_PROBA);
            int targets = labels().size();
            DataTable result = DataTable.of(table.rows(), width);
            int[] found = new int[samples.k];
            double[] weights = new double[samples.k];
            for (int r = 0; r < table.rows(); r++) {
                samples.nearest(x, r * table.columns(), found, weights);
                double sum = 0;
                for (double w : weights) {
                    sum += w;
                }
                int from = r * width;
                for (int t = 0; t < targets; t++) {
                    for (int i = 0; i < found.length && sum != 0; i++) {
                        result.values()[from + y[found[i] * targets + t]] += weights[i] / sum;
                    }
                    from += labels().get(t).count();
                }
            }
            return result;
        }
    }

    /** The weighted mean of the neighbours' targets. Immutable. */
    private static final class Numbers extends Regressor {
        private final Samples samples;
        private final double[][] y;
        private final int width;

        Numbers(EstimatorAttributes f, Samples samples) {
            super(
                    f.type(),
                    samples.features(),
                    f.array("_y").rank() == 1 ? 0 : f.array("_y").dim(1));
            this.samples = samples;
            NdArray targets = f.array("_y");
            width = targets.rank() == 1 ? 1 : targets.dim(1);
            double[] all = targets.doubles();
            y = new double[all.length / Math.max(1, width)][width];
            for (int i = 0; i < all.length; i++) {
                y[i / width][i % width] = all[i];
            }
            if (y.length != samples.count()) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has " + y.length + " targets for " + samples.count() + " samples");
            }
        }

        @Override
        public DataTable predict(DataTable table) {
            double[] x = table.finite(type());
            DataTable result = DataTable.of(table.rows(), width);
            int[] found = new int[samples.k];
            double[] weights = new double[samples.k];
            for (int r = 0; r < table.rows(); r++) {
                samples.nearest(x, r * table.columns(), found, weights);
                double sum = 0;
                for (double w : weights) {
                    sum += w;
                }
                for (int i = 0; i < found.length; i++) {
                    for (int c = 0; c < width; c++) {
                        result.values()[r * width + c] += weights[i] * y[found[i]][c] / sum;
                    }
                }
            }
            return result;
        }
    }
}
