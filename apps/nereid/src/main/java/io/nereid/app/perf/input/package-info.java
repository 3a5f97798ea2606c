// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The inputs of a performance measurement: generated, from a file, or recorded. */
@NullMarked
package io.nereid.app.perf.input;

import org.jspecify.annotations.NullMarked;
