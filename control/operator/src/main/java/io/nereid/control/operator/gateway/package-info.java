// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The gateway of a cluster: routes, revisions and their pods as the API server tells them, and the load that it tells
 * the autoscaler.
 */
@NullMarked
package io.nereid.control.operator.gateway;

import org.jspecify.annotations.NullMarked;
