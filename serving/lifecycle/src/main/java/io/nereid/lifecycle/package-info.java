// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The manager: turns aspired versions into available servables and drains them safely. */
@NullMarked
package io.nereid.lifecycle;

import org.jspecify.annotations.NullMarked;
