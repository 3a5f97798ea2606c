// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.compose;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PyNone;

/** The identity: a step that is None or {@code 'passthrough'}. Immutable. */
public final class Passthrough extends Transformer {
    public Passthrough(String type, int features) {
        super(type, features, features);
    }

    @Override
    public boolean keepsWidth() {
        return true;
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        return table;
    }

    /** Whether a step of a composite estimator passes its input through: None or {@code 'passthrough'}. */
    static boolean is(Object step) {
        return step == PyNone.NONE || "passthrough".equals(step);
    }
}
