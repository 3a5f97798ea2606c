// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neighbors;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;

/**
 * {@code KNeighborsTransformer} and {@code RadiusNeighborsTransformer}: a column for each training row, with its distance,
 * or 1, where it is a neighbour. Immutable.
 */
public final class NeighborGraph extends Transformer {
    private final TrainingSamples samples;
    private final boolean distances;
    /** The number of neighbours; 0 for all within the radius. */
    private final int k;

    private final double radius;

    private NeighborGraph(EstimatorAttributes f, TrainingSamples samples, int k, double radius) {
        super(f.type(), samples.features(), samples.count());
        this.samples = samples;
        this.k = k;
        this.radius = radius;
        String mode = f.text("mode", "distance");
        if (!mode.equals("distance") && !mode.equals("connectivity")) {
            throw f.unsupported("mode");
        }
        distances = mode.equals("distance");
    }

    /** With a number of neighbours; one more where distances are wanted, as a training row is its own neighbour. */
    public static NeighborGraph nearest(EstimatorAttributes f) {
        TrainingSamples samples = TrainingSamples.of(f);
        int more = f.text("mode", "distance").equals("distance") ? 1 : 0;
        return new NeighborGraph(f, samples, samples.neighbours(f, f.integer("n_neighbors", 5) + more), 0);
    }

    public static NeighborGraph within(EstimatorAttributes f) {
        TrainingSamples samples = TrainingSamples.of(f);
        return new NeighborGraph(f, samples, 0, samples.reduce(f.number("radius", 1)));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int n = samples.count();
        DataTable result = DataTable.of(table.rows(), n);
        int[] found = new int[k];
        double[] near = new double[k];
        for (int r = 0; r < table.rows(); r++) {
            int from = r * table.columns();
            if (k > 0) {
                samples.nearest(x, from, found, near);
            }
            for (int i = 0; i < k; i++) {
                result.values()[r * n + found[i]] = distances ? near[i] : 1;
            }
            for (int i = 0; k == 0 && i < n; i++) {
                double d = samples.reduced(i, x, from);
                if (d <= radius) {
                    result.values()[r * n + i] = distances ? samples.root(d) : 1;
                }
            }
        }
        return result;
    }
}
