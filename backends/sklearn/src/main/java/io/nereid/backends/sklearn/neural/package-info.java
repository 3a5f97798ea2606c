// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Multi-layer perceptrons (sklearn.neural_network). */
@NullMarked
package io.nereid.backends.sklearn.neural;

import org.jspecify.annotations.NullMarked;
