// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Server-side apply: which objects have to be applied. */
@NullMarked
package io.nereid.control.kubernetes.apply;

import org.jspecify.annotations.NullMarked;
