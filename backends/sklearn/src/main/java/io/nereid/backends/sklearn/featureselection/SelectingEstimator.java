// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.featureselection;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.preprocessing.FeatureSelector;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/** A selector of columns that also predicts, with an estimator of these columns. Immutable. */
final class SelectingEstimator extends Estimator {
    private final FeatureSelector selector;
    private final Estimator inner;

    SelectingEstimator(String type, FeatureSelector selector, Estimator inner) {
        super(type, selector.features());
        this.selector = selector;
        this.inner = inner;
    }

    @Override
    public List<PredictMethod> methods() {
        List<PredictMethod> methods = new ArrayList<>();
        for (PredictMethod method : inner.methods()) {
            if (method != PredictMethod.TRANSFORM && method != PredictMethod.SCORE_SAMPLES) {
                methods.add(method);
            }
        }
        methods.add(PredictMethod.TRANSFORM);
        return methods;
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.TRANSFORM ? selector.width(method) : inner.width(method);
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.TRANSFORM ? selector.type(method) : inner.type(method);
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        DataTable selected = selector.transform(table);
        return method == PredictMethod.TRANSFORM ? selected : inner.checked(method, selected);
    }
}
