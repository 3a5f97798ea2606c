// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.cluster;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.List;

/**
 * {@code KMeans} and {@code MiniBatchKMeans}: {@code predict} is the nearest cluster centre, {@code transform} the
 * distances to all. Immutable.
 */
public final class KMeans extends Estimator {
    private final double[][] centres;

    private KMeans(EstimatorAttributes f, double[][] centres) {
        super(f.type(), centres[0].length);
        this.centres = centres;
    }

    public static KMeans of(EstimatorAttributes f) {
        double[][] centres = MatrixOps.rows(f, -1, -1, "cluster_centers_");
        if (centres.length == 0) {
            throw UnsupportedModel.unsupported(f.path() + " has no centres");
        }
        return new KMeans(f, centres);
    }

    @Override
    public boolean quick() {
        return centres.length * centres[0].length < 4096;
    }

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT, PredictMethod.TRANSFORM);
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.PREDICT ? 0 : centres.length;
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? DataType.INT32 : DataType.FP64;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        double[] x = table.finite(type());
        DataTable distances = DataTable.of(table.rows(), centres.length);
        double[] nearest = new double[table.rows()];
        for (int r = 0; r < table.rows(); r++) {
            for (int k = 0; k < centres.length; k++) {
                double sum = 0;
                for (int i = 0; i < centres[k].length; i++) {
                    double d = x[r * table.columns() + i] - centres[k][i];
                    sum += d * d;
                }
                distances.values()[r * centres.length + k] = Math.sqrt(sum);
                if (distances.at(r, k) < distances.at(r, (int) nearest[r])) {
                    nearest[r] = k;
                }
            }
        }
        return method == PredictMethod.PREDICT ? DataTable.column(nearest) : distances;
    }
}
