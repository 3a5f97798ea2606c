// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The benchmark program and its scenarios, which make the results table; run by {@code run.sh}. */
@NullMarked
package io.nereid.bench;

import org.jspecify.annotations.NullMarked;
