// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Where and when batches run: the threads of a device, host policies, the timer, model instances and the rate
 * limiter.
 */
@NullMarked
package io.nereid.scheduling.execution;

import org.jspecify.annotations.NullMarked;
