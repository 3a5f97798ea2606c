// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Services that share the pods of a pool: what they may ask for, and the objects of a pool. */
@NullMarked
package io.nereid.control.kubernetes.pool;

import org.jspecify.annotations.NullMarked;
