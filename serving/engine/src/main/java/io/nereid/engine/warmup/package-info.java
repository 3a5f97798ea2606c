// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Warm-up requests that run before a version becomes available. */
@NullMarked
package io.nereid.engine.warmup;

import org.jspecify.annotations.NullMarked;
