// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A fitted scikit-learn estimator: its predict methods, and the shape and type of their results. The base of
 * classifiers, regressors, transformers and composite estimators. Immutable.
 */
abstract class Estimator {
    private final String type;
    private final int features;

    Estimator(String type, int features) {
        this.type = type;
        this.features = features;
    }

    /** The name of its scikit-learn class. */
    final String type() {
        return type;
    }

    /** The number of input columns; -1 when any number is accepted, or the file does not store it. */
    int features() {
        return features;
    }

    /** The methods that it supports, the default one first. */
    abstract List<Method> methods();

    /** The number of columns of a result; 0 for one value per row (a 1-d array); -1 when unknown before the run. */
    abstract int width(Method method);

    DataType type(Method method) {
        return DataType.FP64;
    }

    /** Runs a method. A result of one value per row is a table of one column. */
    abstract Table apply(Method method, Table table);

    /** The preprocessor inside the estimator that its input passes first; null when there is none. */
    @Nullable Estimator before() {
        return null;
    }

    /** Whether the result of {@link Method#TRANSFORM} always has as many columns as its input. */
    boolean keepsWidth() {
        return false;
    }

    /** Whether a row takes a few microseconds at most. */
    boolean quick() {
        return false;
    }

    final boolean can(Method method) {
        return methods().contains(method);
    }

    /**
     * Runs a method after a check of the number of columns.
     *
     * @throws ServingException INVALID_ARGUMENT, in scikit-learn's words, for another number of columns
     */
    final Table checked(Method method, Table table) {
        int expected = features();
        if (expected >= 0 && table.columns() != expected) {
            throw ServingException.invalidArgument(
                    "X has " + table.columns() + " features, but " + type + " is expecting " + expected + " features");
        }
        return apply(method, table);
    }

    /** Builds the estimators that a meta-estimator contains, such as the members of a voting classifier. */
    interface Factory {
        /**
         * The estimator of an object of the file.
         *
         * @throws ServingException INVALID_ARGUMENT for an object that is not a supported estimator
         */
        Estimator build(Object value);
    }
}
