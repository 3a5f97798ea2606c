// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The rollout of one component: its revisions, their shares of the traffic, canaries and rollback. */
@NullMarked
package io.nereid.control.core.rollout;

import org.jspecify.annotations.NullMarked;
