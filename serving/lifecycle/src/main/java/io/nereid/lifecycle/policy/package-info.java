// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Policies of the manager: the order of loads and unloads in a version transition, and the assignment of labels.
 */
@NullMarked
package io.nereid.lifecycle.policy;

import org.jspecify.annotations.NullMarked;
