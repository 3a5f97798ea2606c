// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Queues, batchers, instance permits and the pools whose threads pull from them. */
@NullMarked
package io.nereid.scheduling;

import org.jspecify.annotations.NullMarked;
