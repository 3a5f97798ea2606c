// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Load on a model in closed and open loop, and the measurement of its responses. */
@NullMarked
package io.nereid.app.perf.load;

import org.jspecify.annotations.NullMarked;
