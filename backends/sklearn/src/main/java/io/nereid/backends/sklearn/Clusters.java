// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.List;

/**
 * {@code KMeans} and {@code MiniBatchKMeans}: {@code predict} is the nearest cluster centre, {@code transform} the
 * distances to all. Immutable.
 */
final class Clusters extends Estimator {
    private final double[][] centres;

    private Clusters(Fields f, double[][] centres) {
        super(f.type(), centres[0].length);
        this.centres = centres;
    }

    static Clusters of(Fields f) {
        double[][] centres = Steps.rows(f, -1, -1, "cluster_centers_");
        if (centres.length == 0) {
            throw Refusal.unsupported(f.path() + " has no centres");
        }
        return new Clusters(f, centres);
    }

    @Override
    boolean quick() {
        return centres.length * centres[0].length < 4096;
    }

    @Override
    List<Method> methods() {
        return List.of(Method.PREDICT, Method.TRANSFORM);
    }

    @Override
    int width(Method method) {
        return method == Method.PREDICT ? 0 : centres.length;
    }

    @Override
    DataType type(Method method) {
        return method == Method.PREDICT ? DataType.INT32 : DataType.FP64;
    }

    @Override
    Table apply(Method method, Table table) {
        double[] x = table.finite(type());
        Table distances = Table.of(table.rows(), centres.length);
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
        return method == Method.PREDICT ? Table.column(nearest) : distances;
    }
}
