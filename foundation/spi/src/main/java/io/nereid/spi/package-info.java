// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Values and contracts that the engine, the protocols and plugins share. No behaviour beyond checks on values. */
@NullMarked
package io.nereid.spi;

import org.jspecify.annotations.NullMarked;
