// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Pools: services that share pods. Decides with control/placement, and carries it out in pods and EndpointSlices. */
@NullMarked
package io.nereid.control.operator.pool;

import org.jspecify.annotations.NullMarked;
