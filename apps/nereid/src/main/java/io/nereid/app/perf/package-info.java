// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The performance measurement command: its options, assertions and exit codes. */
@NullMarked
package io.nereid.app.perf;

import org.jspecify.annotations.NullMarked;
