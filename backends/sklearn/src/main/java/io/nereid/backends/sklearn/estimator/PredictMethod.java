// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The prediction methods of scikit-learn's estimators; their Python names are the names of the outputs. Immutable. */
public enum PredictMethod {
    PREDICT,
    PREDICT_PROBA,
    PREDICT_LOG_PROBA,
    DECISION_FUNCTION,
    TRANSFORM,
    SCORE_SAMPLES;

    private final String text = name().toLowerCase(Locale.ROOT);

    public String text() {
        return text;
    }

    public static @Nullable PredictMethod of(String text) {
        for (PredictMethod m : values()) {
            if (m.text.equals(text)) {
                return m;
            }
        }
        return null;
    }
}
