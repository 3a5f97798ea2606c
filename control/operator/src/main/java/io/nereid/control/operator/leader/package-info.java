// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Leader election: one replica of the operator acts at a time. */
@NullMarked
package io.nereid.control.operator.leader;

import org.jspecify.annotations.NullMarked;
