// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The commands on resources (apply, get, describe, delete, logs, wait), and the client of the control API. */
@NullMarked
package io.nereid.app.control;

import org.jspecify.annotations.NullMarked;
