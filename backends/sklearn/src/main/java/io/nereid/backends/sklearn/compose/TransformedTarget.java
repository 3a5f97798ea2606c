// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.compose;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Invertible;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import org.jspecify.annotations.Nullable;

/**
 * {@code TransformedTargetRegressor}: the predictions of a regressor that was fitted to transformed targets, transformed
 * back. Immutable.
 */
public final class TransformedTarget extends Regressor {
    private final Estimator regressor;
    private final Invertible back;

    private TransformedTarget(EstimatorAttributes f, Estimator regressor, Invertible back, int width) {
        super(f.type(), regressor.features(), width);
        this.regressor = regressor;
        this.back = back;
    }

    /** The regressor of its attributes. */
    public static TransformedTarget of(EstimatorAttributes f, Estimator.Factory factory) {
        Estimator regressor = factory.build(f.required("regressor_"));
        Estimator transformer = factory.build(f.required("transformer_"));
        Invertible back = back(transformer);
        if (back == null || !regressor.can(PredictMethod.PREDICT)) {
            throw UnsupportedModel.unsupported(
                    f.path() + " with a " + (back == null ? transformer : regressor).type() + " is not supported");
        }
        int width = regressor.width(PredictMethod.PREDICT);
        boolean flat = f.integer("_training_dim", width == 0 ? 1 : 2) == 1 && width <= 1;
        return new TransformedTarget(f, regressor, back, flat ? 0 : Math.max(1, width));
    }

    /** The inverse of a transformer; null when it has none. */
    private static @Nullable Invertible back(Estimator transformer) {
        if (transformer instanceof Invertible direct) {
            return direct;
        }
        if (transformer instanceof Passthrough) {
            return table -> table;
        }
        if (!(transformer instanceof Pipeline pipeline)) {
            return null;
        }
        Invertible whole = back(pipeline.last());
        for (int i = pipeline.first().size() - 1; i >= 0 && whole != null; i--) {
            Invertible later = whole;
            Invertible earlier = back(pipeline.first().get(i));
            whole = earlier == null ? null : table -> earlier.inverse(later.inverse(table));
        }
        return whole;
    }

    @Override
    public @Nullable Estimator before() {
        return regressor;
    }

    @Override
    public DataTable predict(DataTable table) {
        return back.inverse(regressor.checked(PredictMethod.PREDICT, table));
    }
}
