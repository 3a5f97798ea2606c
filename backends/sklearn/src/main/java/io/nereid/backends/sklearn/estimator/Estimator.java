// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A fitted scikit-learn estimator: its predict methods, and the shape and type of their results. The base of
 * classifiers, regressors, transformers and composite estimators. Immutable.
 */
public abstract class Estimator {
    private final String type;
    private final int features;

    public Estimator(String type, int features) {
        this.type = type;
        this.features = features;
    }

    /** The name of its scikit-learn class. */
    public final String type() {
        return type;
    }

    /** The number of input columns; -1 when any number is accepted, or the file does not store it. */
    public int features() {
        return features;
    }

    /** The methods that it supports, the default one first. */
    public abstract List<PredictMethod> methods();

    /** The number of columns of a result; 0 for one value per row (a 1-d array); -1 when unknown before the run. */
    public abstract int width(PredictMethod method);

    public DataType type(PredictMethod method) {
        return DataType.FP64;
    }

    /** Runs a method. A result of one value per row is a table of one column. */
    public abstract DataTable apply(PredictMethod method, DataTable table);

    /** The preprocessor inside the estimator that its input passes first; null when there is none. */
    public @Nullable Estimator before() {
        return null;
    }

    /** Whether the result of {@link PredictMethod#TRANSFORM} always has as many columns as its input. */
    public boolean keepsWidth() {
        return false;
    }

    /** Whether a row takes a few microseconds at most. */
    public boolean quick() {
        return false;
    }

    public final boolean can(PredictMethod method) {
        return methods().contains(method);
    }

    /**
     * Runs a method after a check of the number of columns.
     *
     * @throws ServingException INVALID_ARGUMENT, in scikit-learn's words, for another number of columns
     */
    public final DataTable checked(PredictMethod method, DataTable table) {
        int expected = features();
        if (expected >= 0 && table.columns() != expected) {
            throw ServingException.invalidArgument(
                    "X has " + table.columns() + " features, but " + type + " is expecting " + expected + " features");
        }
        return apply(method, table);
    }

    /** Builds the estimators that a meta-estimator contains, such as the members of a voting classifier. */
    public interface Factory {
        /**
         * The estimator of an object of the file.
         *
         * @throws ServingException INVALID_ARGUMENT for an object that is not a supported estimator
         */
        Estimator build(Object value);
    }
}
