// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Callers that wait until versions have settled or have reached a phase, and what they get. */
@NullMarked
package io.nereid.lifecycle.waiters;

import org.jspecify.annotations.NullMarked;
