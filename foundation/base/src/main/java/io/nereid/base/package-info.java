// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The basis of every module: error codes, clock, threads, units. Only classes that at least two modules need belong
 * here.
 */
@NullMarked
package io.nereid.base;

import org.jspecify.annotations.NullMarked;
