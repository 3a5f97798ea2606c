// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The page of metrics: which metrics the engine has, and under which names it shows them. */
@NullMarked
package io.nereid.engine.metrics;

import org.jspecify.annotations.NullMarked;
