// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.List;

/** {@code KBinsDiscretizer}: the index of the bin that contains each value, optionally one-hot encoded. Immutable. */
public final class KBinsDiscretizer extends Transformer {
    private final double[][] edges;

    private KBinsDiscretizer(EstimatorAttributes f, double[][] edges) {
        super(f.type(), edges.length, edges.length);
        this.edges = edges;
    }

    public static Estimator of(EstimatorAttributes f) {
        List<Object> list = f.list("bin_edges_");
        double[][] edges = new double[list.size()][];
        for (int c = 0; c < edges.length; c++) {
            if (!(list.get(c) instanceof NdArray a) || a.count() < 2) {
                throw UnsupportedModel.unsupported(f.path() + " has no bin edges");
            }
            edges[c] = a.doubles();
        }
        KBinsDiscretizer bins = new KBinsDiscretizer(f, edges);
        return f.text("encode", "onehot").startsWith("onehot")
                ? Pipeline.of(
                        f.type(), List.of(bins, CategoryEncoder.oneHot(new EstimatorAttributes(f.object("_encoder")))))
                : bins;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < x.length; i++) {
            double[] e = edges[i % edges.length];
            int bin = 0;
            while (bin < e.length - 2 && x[i] >= e[bin + 1]) {
                bin++;
            }
            result.values()[i] = bin;
        }
        return result;
    }
}
