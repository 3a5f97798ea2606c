// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Checks whether a server can run well on this machine, and whether its files and addresses are safe. */
@NullMarked
package io.nereid.app.doctor;

import org.jspecify.annotations.NullMarked;
