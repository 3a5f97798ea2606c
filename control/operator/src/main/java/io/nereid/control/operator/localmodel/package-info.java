// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Carries out the caches of models on nodes: agents, claims, statuses. */
@NullMarked
package io.nereid.control.operator.localmodel;

import org.jspecify.annotations.NullMarked;
