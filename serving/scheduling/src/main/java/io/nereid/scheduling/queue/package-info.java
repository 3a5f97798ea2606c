// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The request queue of a model: priority levels, timeouts, batch formation, splitting of large requests, ordered
 * completion.
 */
@NullMarked
package io.nereid.scheduling.queue;

import org.jspecify.annotations.NullMarked;
