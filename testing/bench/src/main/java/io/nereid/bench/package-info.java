// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Load, micro-benchmarks and the table of figures; run by {@code run.sh}. */
@NullMarked
package io.nereid.bench;

import org.jspecify.annotations.NullMarked;
