// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Makes plans true on this machine: models, child processes, routes, scale. */
@NullMarked
package io.nereid.control.local;

import org.jspecify.annotations.NullMarked;
