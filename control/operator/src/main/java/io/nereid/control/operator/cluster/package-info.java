// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The cluster as the operator sees it: a client that speaks in trees, and caches of what it watches. */
@NullMarked
package io.nereid.control.operator.cluster;

import org.jspecify.annotations.NullMarked;
