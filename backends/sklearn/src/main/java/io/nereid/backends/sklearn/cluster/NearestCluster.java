// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.cluster;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.tensor.DataType;
import java.util.List;

/**
 * {@code Birch}, {@code MeanShift} and {@code AffinityPropagation}: the label of the nearest centre. Of {@code Birch},
 * several centres may have one label, and {@code transform} is the distances to all centres. Immutable.
 */
public final class NearestCluster extends Estimator {
    private final DenseMatrix centres;
    private final int[] labels;
    private final boolean transforms;

    private NearestCluster(EstimatorAttributes f, DenseMatrix centres, int[] labels, boolean transforms) {
        super(f.type(), centres.columns());
        this.centres = centres;
        this.labels = labels;
        this.transforms = transforms;
    }

    public static NearestCluster birch(EstimatorAttributes f) {
        DenseMatrix centres = DenseMatrix.of(f, -1, -1, "subcluster_centers_");
        double[] labels = f.doubles(centres.rows(), "subcluster_labels_");
        int[] numbers = new int[labels.length];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (int) labels[i];
        }
        return new NearestCluster(f, centres, numbers, true);
    }

    public static NearestCluster of(EstimatorAttributes f) {
        DenseMatrix centres = DenseMatrix.of(f, -1, -1, "cluster_centers_");
        int[] labels = new int[centres.rows()];
        for (int i = 0; i < labels.length; i++) {
            labels[i] = i;
        }
        return new NearestCluster(f, centres, labels, false);
    }

    @Override
    public boolean quick() {
        return centres.values().length < 4096;
    }

    @Override
    public List<PredictMethod> methods() {
        return transforms ? List.of(PredictMethod.PREDICT, PredictMethod.TRANSFORM) : List.of(PredictMethod.PREDICT);
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.PREDICT ? 0 : centres.rows();
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? DataType.INT64 : DataType.FP64;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        double[] x = table.finite(type());
        int columns = centres.columns();
        if (method == PredictMethod.PREDICT) {
            double[] nearest = new double[table.rows()];
            for (int r = 0; r < nearest.length; r++) {
                nearest[r] = labels[centres.nearest(x, r * columns)];
            }
            return DataTable.column(nearest);
        }
        DataTable distances = DataTable.of(table.rows(), centres.rows());
        for (int r = 0; r < table.rows(); r++) {
            for (int k = 0; k < centres.rows(); k++) {
                distances.values()[r * centres.rows() + k] = Math.sqrt(centres.squaredDistance(k, x, r * columns));
            }
        }
        return distances;
    }
}
