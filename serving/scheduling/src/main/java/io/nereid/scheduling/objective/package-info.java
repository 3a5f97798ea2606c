// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The latency objective of a model: what follows the load to keep it, and what is refused when it cannot be kept. */
@NullMarked
package io.nereid.scheduling.objective;

import org.jspecify.annotations.NullMarked;
