// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A fitted estimator. Immutable. */
abstract class Estimator {
    private final String type;
    private final int features;

    Estimator(String type, int features) {
        this.type = type;
        this.features = features;
    }

    /** The name of its class in scikit-learn. */
    final String type() {
        return type;
    }

    /** Columns it takes; -1 when it does not care. */
    int features() {
        return features;
    }

    /** What it can do, the most usual first. */
    abstract List<Method> methods();

    /** Columns of an answer; 0 for one value a row; -1 when the file does not tell. */
    abstract int width(Method method);

    DataType type(Method method) {
        return DataType.FP64;
    }

    /** Does it. A column that is one value a row is a table of one column. */
    abstract Table apply(Method method, Table table);

    /** What its columns go through first, inside it; null for nothing. */
    @Nullable Estimator before() {
        return null;
    }

    /** Whether a row takes at most a few microseconds. */
    boolean quick() {
        return false;
    }

    final boolean can(Method method) {
        return methods().contains(method);
    }

    final Table checked(Method method, Table table) {
        int wanted = features();
        if (wanted >= 0 && table.columns() != wanted) {
            throw ServingException.invalidArgument(
                    "X has " + table.columns() + " features, but " + type + " is expecting " + wanted + " features");
        }
        return apply(method, table);
    }
}
