// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The Python backend: models written against Triton's Python API; each instance is a process of its own. */
@NullMarked
package io.nereid.backends.python;

import org.jspecify.annotations.NullMarked;
