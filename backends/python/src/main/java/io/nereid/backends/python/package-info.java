// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models written in Python after Triton's interface, each instance of them a process of its own. */
@NullMarked
package io.nereid.backends.python;

import org.jspecify.annotations.NullMarked;
