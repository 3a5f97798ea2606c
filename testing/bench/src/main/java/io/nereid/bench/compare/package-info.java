// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Two builds of the server beside each other: better, the same or worse. */
@NullMarked
package io.nereid.bench.compare;

import org.jspecify.annotations.NullMarked;
