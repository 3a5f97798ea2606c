// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The scenarios of the benchmark program: each measures one or more rows of the results table. */
@NullMarked
package io.nereid.bench.scenario;

import org.jspecify.annotations.NullMarked;
