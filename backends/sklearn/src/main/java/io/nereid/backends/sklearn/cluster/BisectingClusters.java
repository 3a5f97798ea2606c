// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.cluster;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code BisectingKMeans}: {@code predict} descends a tree to the nearer of two centres at each node, {@code transform} is
 * the distances to the centres of all clusters. Immutable.
 */
public final class BisectingClusters extends Estimator {
    private final DenseMatrix centres;
    /** By node, its left child, whose sibling follows; 0 for a leaf. */
    private final int[] children;
    /** By leaf, its cluster. */
    private final int[] labels;
    /** By node, its centre. */
    private final DenseMatrix places;

    private BisectingClusters(
            EstimatorAttributes f, DenseMatrix centres, int[] children, int[] labels, DenseMatrix places) {
        super(f.type(), centres.columns());
        this.centres = centres;
        this.children = children;
        this.labels = labels;
        this.places = places;
    }

    public static BisectingClusters of(EstimatorAttributes f) {
        DenseMatrix centres = DenseMatrix.of(f, -1, -1, "cluster_centers_");
        int columns = centres.columns();
        int limit = 2 * centres.rows() - 1;
        double[] mean = f.has("_X_mean") ? f.doubles(columns, "_X_mean") : new double[columns];
        List<PyObject> nodes = new ArrayList<>(List.of(f.object("_bisecting_tree")));
        int[] children = new int[limit];
        int[] labels = new int[limit];
        double[] places = new double[limit * columns];
        for (int n = 0; n < nodes.size(); n++) {
            EstimatorAttributes node = new EstimatorAttributes(nodes.get(n));
            for (int i = 0; n > 0 && i < columns; i++) {
                places[n * columns + i] = node.doubles(columns, "center")[i] + mean[i];
            }
            if (!node.has("left")) {
                labels[n] = node.integer("label", 0);
                continue;
            }
            children[n] = nodes.size();
            nodes.add(node.object("left"));
            nodes.add(node.object("right"));
            if (nodes.size() > limit) {
                throw UnsupportedModel.corrupt(f.path() + " has a tree of more than " + limit + " nodes");
            }
        }
        return new BisectingClusters(f, centres, children, labels, DenseMatrix.over(limit, columns, places));
    }

    @Override
    public boolean quick() {
        return centres.values().length < 4096;
    }

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT, PredictMethod.TRANSFORM);
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.PREDICT ? 0 : centres.rows();
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? DataType.INT32 : DataType.FP64;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        double[] x = table.finite(type());
        int columns = centres.columns();
        boolean predict = method == PredictMethod.PREDICT;
        DataTable result = DataTable.of(table.rows(), predict ? 1 : centres.rows());
        for (int r = 0; r < table.rows(); r++) {
            int from = r * columns;
            int node = 0;
            while (predict && children[node] != 0) {
                int left = children[node];
                node = places.squaredDistance(left, x, from) <= places.squaredDistance(left + 1, x, from)
                        ? left
                        : left + 1;
            }
            for (int k = 0; !predict && k < centres.rows(); k++) {
                result.values()[r * centres.rows() + k] = Math.sqrt(centres.squaredDistance(k, x, from));
            }
            if (predict) {
                result.values()[r] = labels[node];
            }
        }
        return result;
    }
}
