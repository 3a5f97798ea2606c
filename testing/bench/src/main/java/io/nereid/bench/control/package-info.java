// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Rows of the results table about the control plane: its gateway, starts from zero, many services. */
@NullMarked
package io.nereid.bench.control;

import org.jspecify.annotations.NullMarked;
