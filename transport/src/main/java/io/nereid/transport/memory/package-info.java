// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The memory that clients make the server hold: bodies that arrive, answers that wait, and whom to cut when it is short. */
@NullMarked
package io.nereid.transport.memory;

import org.jspecify.annotations.NullMarked;
