// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The explained model as a function from rows to predictions, with a budget of predictions and time. */
@NullMarked
package io.nereid.explain.model;

import org.jspecify.annotations.NullMarked;
