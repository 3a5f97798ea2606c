// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Counters, histograms and quantiles of each loaded version. */
@NullMarked
package io.nereid.engine.statistics;

import org.jspecify.annotations.NullMarked;
