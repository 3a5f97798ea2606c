// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Who may call the services of a cluster, as its API server knows it. */
@NullMarked
package io.nereid.control.operator.access;

import org.jspecify.annotations.NullMarked;
