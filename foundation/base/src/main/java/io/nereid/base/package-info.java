// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Ground for every room: error codes, clock, threads, units. A class enters only when two modules need it. */
@NullMarked
package io.nereid.base;

import org.jspecify.annotations.NullMarked;
