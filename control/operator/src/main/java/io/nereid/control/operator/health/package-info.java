// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The probes and metrics of the operator and of gateways. */
@NullMarked
package io.nereid.control.operator.health;

import org.jspecify.annotations.NullMarked;
