// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The API of schedulers: {@link io.nereid.scheduling.Scheduler}, its options, the batch runner that it calls, custom
 * batching strategies, and the reason a batch was closed.
 */
@NullMarked
package io.nereid.scheduling;

import org.jspecify.annotations.NullMarked;
