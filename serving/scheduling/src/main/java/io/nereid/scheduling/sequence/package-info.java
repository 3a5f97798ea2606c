// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The sequence batcher: which requests belong together, in which slot of an instance they run, and their control
 * inputs and states.
 */
@NullMarked
package io.nereid.scheduling.sequence;

import org.jspecify.annotations.NullMarked;
