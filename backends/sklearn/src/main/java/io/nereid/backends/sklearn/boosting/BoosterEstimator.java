// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

/** An estimator that a native model computes, whose columns are those of that model. Immutable. */
public interface BoosterEstimator {
    LoadedBooster booster();
}
