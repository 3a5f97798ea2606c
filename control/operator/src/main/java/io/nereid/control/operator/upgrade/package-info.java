// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The rollout of pod templates that differ because the operator is another one, service by service. */
@NullMarked
package io.nereid.control.operator.upgrade;

import org.jspecify.annotations.NullMarked;
