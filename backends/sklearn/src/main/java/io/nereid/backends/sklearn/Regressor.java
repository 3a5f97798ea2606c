// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.List;

/** An estimator that gives numbers. Immutable. */
abstract class Regressor extends Estimator {
    private final int width;

    /** @param width numbers a row; 0 for one that is no list of one */
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
