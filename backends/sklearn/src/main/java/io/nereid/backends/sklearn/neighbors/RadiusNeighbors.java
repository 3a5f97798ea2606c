// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neighbors;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.PyNone;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code RadiusNeighborsClassifier} and {@code RadiusNeighborsRegressor}: all training samples within a radius are
 * neighbours. Stateless.
 */
public final class RadiusNeighbors {
    private RadiusNeighbors() {}

    /** The samples, the radius, and how neighbours weigh. Immutable. */
    private static final class Samples {
        private final TrainingSamples all;
        private final double radius;
        private final boolean byDistance;

        Samples(EstimatorAttributes f) {
            all = TrainingSamples.of(f);
            radius = all.reduce(f.number("radius", 1));
            byDistance = TrainingSamples.byDistance(f);
        }

        /** Finds the neighbours of a row and their weights, and returns their number. */
        int within(double[] x, int from, int[] found, double[] weights) {
            int count = 0;
            for (int i = 0; i < all.count(); i++) {
                double d = all.reduced(i, x, from);
                if (d <= radius) {
                    found[count] = i;
                    weights[count++] = all.root(d);
                }
            }
            TrainingSamples.weigh(weights, count, byDistance);
            return count;
        }
    }

    public static Estimator classifier(EstimatorAttributes f) {
        if (f.flag("outputs_2d_", false)) {
            throw UnsupportedModel.unsupported(f.path() + " of several targets is not supported");
        }
        return new Classes(f, new Samples(f));
    }

    public static Estimator regressor(EstimatorAttributes f) {
        Samples samples = new Samples(f);
        DenseMatrix y = DenseMatrix.targets(f, samples.all.count(), "_y");
        return new Numbers(f, samples, y, f.array("_y").rank() == 1);
    }

    /** Votes of the neighbours. Immutable. */
    private static final class Classes extends Classifier {
        private final Samples samples;
        private final int[] y;
        /** Whether rows without neighbours have a label; otherwise they are refused. */
        private final boolean labelled;

        private final double outlierNumber;
        private final @Nullable String outlierText;
        /** Its class; -1 when it is none of the classes. */
        private final int outlierClass;

        Classes(EstimatorAttributes f, Samples samples) {
            super(f.type(), samples.all.features(), ClassLabels.of(f.array("classes_")));
            this.samples = samples;
            this.y = f.array("_y").ints();
            for (int v : y) {
                if (v < 0 || v >= labels().count()) {
                    throw UnsupportedModel.corrupt(f.path() + " has a sample whose class does not exist");
                }
            }
            if (y.length != samples.all.count()) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has " + y.length + " classes for " + samples.all.count() + " samples");
            }
            List<Object> given = f.has("outlier_label_") ? f.list("outlier_label_") : List.of();
            if (given.size() > 1) {
                throw f.unsupported("outlier_label_");
            }
            Object label = given.isEmpty() ? PyNone.NONE : given.get(0);
            labelled = label != PyNone.NONE;
            outlierText = label instanceof String s ? s : null;
            outlierNumber = outlierText == null ? PythonValues.number(label) : Double.NaN;
            outlierClass = labels().find(outlierNumber, outlierText);
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
            int[] found = new int[y.length];
            double[] weights = new double[y.length];
            for (int r = 0; r < table.rows(); r++) {
                int count = samples.within(x, r * table.columns(), found, weights);
                double sum = 0;
                for (int i = 0; i < count; i++) {
                    result.values()[r * classes + y[found[i]]] += weights[i];
                    sum += weights[i];
                }
                if (count == 0 && !labelled) {
                    throw ServingException.invalidArgument(
                            type() + " has no training row within its radius of row " + r + " of the request",
                            "train the model with 'outlier_label', or leave the row out");
                }
                if (count == 0 && outlierClass >= 0) {
                    result.values()[r * classes + outlierClass] = 1;
                }
                for (int c = 0; sum != 0 && c < classes; c++) {
                    result.values()[r * classes + c] /= sum;
                }
            }
            return result;
        }

        /** {@inheritDoc} A row without neighbours has the label of outliers, which may be none of the classes. */
        @Override
        public DataTable apply(PredictMethod method, DataTable table) {
            if (method != PredictMethod.PREDICT || !labelled || outlierClass >= 0) {
                return super.apply(method, table);
            }
            DataTable proba = proba(table);
            DataTable picked = labels().pick(ClassLabels.greatest(proba));
            @Nullable String @Nullable [] texts = picked.texts();
            for (int r = 0; r < table.rows(); r++) {
                double most = 0;
                for (int c = 0; c < proba.columns(); c++) {
                    most = Math.max(most, proba.at(r, c));
                }
                if (most == 0 && texts != null) {
                    texts[r] = outlierText;
                } else if (most == 0) {
                    picked.values()[r] = outlierNumber;
                }
            }
            return picked;
        }
    }

    /** The weighted mean of the neighbours' targets; NaN without neighbours. Immutable. */
    private static final class Numbers extends Regressor {
        private final Samples samples;
        private final DenseMatrix y;

        Numbers(EstimatorAttributes f, Samples samples, DenseMatrix y, boolean flat) {
            super(f.type(), samples.all.features(), flat ? 0 : y.columns());
            this.samples = samples;
            this.y = y;
        }

        @Override
        public DataTable predict(DataTable table) {
            double[] x = table.finite(type());
            int width = y.columns();
            DataTable result = DataTable.of(table.rows(), width);
            int[] found = new int[y.rows()];
            double[] weights = new double[y.rows()];
            for (int r = 0; r < table.rows(); r++) {
                int count = samples.within(x, r * table.columns(), found, weights);
                double sum = 0;
                for (int i = 0; i < count; i++) {
                    sum += weights[i];
                    for (int c = 0; c < width; c++) {
                        result.values()[r * width + c] += weights[i] * y.at(found[i], c);
                    }
                }
                for (int c = 0; c < width; c++) {
                    result.values()[r * width + c] = count == 0 ? Double.NaN : result.values()[r * width + c] / sum;
                }
            }
            return result;
        }
    }
}
