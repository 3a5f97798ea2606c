// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * What a scheduler and the code around it agree on: options, the batch runner, custom batching strategies, the reason a
 * batch was closed.
 */
@NullMarked
package io.nereid.scheduling;

import org.jspecify.annotations.NullMarked;
