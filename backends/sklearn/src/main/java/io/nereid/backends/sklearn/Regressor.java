// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.List;

/** An estimator that predicts numbers. Immutable. */
abstract class Regressor extends Estimator {
    private final int width;

    /** @param width numbers per row; 0 for a 1-d result of one number per row */
    Regressor(String type, int features, int width) {
        super(type, features);
        this.width = width;
    }

    abstract Table predict(Table table);

    @Override
    List<Method> methods() {
        return List.of(Method.PREDICT);
    }

    @Override
    int width(Method method) {
        return width;
    }

    @Override
    Table apply(Method method, Table table) {
        return predict(table);
    }
}
