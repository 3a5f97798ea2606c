// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The published API: its comparison with the baseline in {@code build/api}, and its documentation as it is written. */
@NullMarked
package io.nereid.conformance.api;

import org.jspecify.annotations.NullMarked;
