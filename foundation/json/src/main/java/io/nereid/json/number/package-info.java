// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Numbers between decimal text and binary: scanning, correct rounding, shortest printing. */
@NullMarked
package io.nereid.json.number;

import org.jspecify.annotations.NullMarked;
