// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

/** The identity: a step that is None or {@code 'passthrough'}. Immutable. */
final class Passthrough extends Transformer {
    Passthrough(String type, int features) {
        super(type, features, features);
    }

    @Override
    boolean keepsWidth() {
        return true;
    }

    @Override
    boolean quick() {
        return true;
    }

    @Override
    Table transform(Table table) {
        return table;
    }

    /** Whether a step of a composite estimator passes its input through: None or {@code 'passthrough'}. */
    static boolean is(Object step) {
        return step == PyNone.NONE || "passthrough".equals(step);
    }
}
