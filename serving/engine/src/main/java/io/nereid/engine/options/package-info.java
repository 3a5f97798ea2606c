// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Settings of an embedded engine: repositories, batching, cache, warm-up, metrics. */
@Experimental
@NullMarked
package io.nereid.engine.options;

import io.nereid.base.Experimental;
import org.jspecify.annotations.NullMarked;
