// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.List;

/** {@code KBinsDiscretizer}: the index of the bin that contains each value, optionally one-hot encoded. Immutable. */
final class Bins extends Transformer {
    private final double[][] edges;

    private Bins(Fields f, double[][] edges) {
        super(f.type(), edges.length, edges.length);
        this.edges = edges;
    }

    static Estimator of(Fields f) {
        List<Object> list = f.list("bin_edges_");
        double[][] edges = new double[list.size()][];
        for (int c = 0; c < edges.length; c++) {
            if (!(list.get(c) instanceof NdArray a) || a.count() < 2) {
                throw Refusal.unsupported(f.path() + " has no bin edges");
            }
            edges[c] = a.doubles();
        }
        Bins bins = new Bins(f, edges);
        return f.text("encode", "onehot").startsWith("onehot")
                ? Chain.of(f.type(), List.of(bins, Encoder.oneHot(new Fields(f.object("_encoder")))))
                : bins;
    }

    @Override
    Table transform(Table table) {
        double[] x = table.finite(type());
        Table result = Table.of(table.rows(), table.columns());
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
