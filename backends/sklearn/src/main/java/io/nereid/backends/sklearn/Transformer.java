// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.List;

/** An estimator that computes columns from columns: method {@code transform}. Immutable. */
abstract class Transformer extends Estimator {
    private final int width;

    Transformer(String type, int features, int width) {
        super(type, features);
        this.width = width;
    }

    abstract Table transform(Table table);

    @Override
    List<Method> methods() {
        return List.of(Method.TRANSFORM);
    }

    @Override
    int width(Method method) {
        return width;
    }

    @Override
    Table apply(Method method, Table table) {
        return transform(table);
    }
}
