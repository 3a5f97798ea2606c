// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The reconcile loop: the same on one machine and in a cluster. */
@NullMarked
package io.nereid.control.plane;

import org.jspecify.annotations.NullMarked;
