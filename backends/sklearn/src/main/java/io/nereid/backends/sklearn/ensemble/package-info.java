// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Ensembles (sklearn.ensemble): random and isolation forests, gradient boosting, AdaBoost, voting, stacking, bagging.
 */
@NullMarked
package io.nereid.backends.sklearn.ensemble;

import org.jspecify.annotations.NullMarked;
