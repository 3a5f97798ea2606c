// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Calibration of predicted probabilities (sklearn.calibration). */
@NullMarked
package io.nereid.backends.sklearn.calibration;

import org.jspecify.annotations.NullMarked;
