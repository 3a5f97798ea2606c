// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import java.util.List;

/** An estimator that predicts numbers. Immutable. */
public abstract class Regressor extends Estimator {
    private final int width;

    /** @param width numbers per row; 0 for a 1-d result of one number per row */
    public Regressor(String type, int features, int width) {
        super(type, features);
        this.width = width;
    }

    public abstract DataTable predict(DataTable table);

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT);
    }

    @Override
    public int width(PredictMethod method) {
        return width;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        return predict(table);
    }
}
