// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import java.util.List;

/** An estimator that computes columns from columns: method {@code transform}. Immutable. */
public abstract class Transformer extends Estimator {
    private final int width;

    public Transformer(String type, int features, int width) {
        super(type, features);
        this.width = width;
    }

    public abstract DataTable transform(DataTable table);

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.TRANSFORM);
    }

    @Override
    public int width(PredictMethod method) {
        return width;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        return transform(table);
    }
}
