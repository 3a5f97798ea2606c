// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The web console: its page, the sign-in of browsers, and the live data, log and settings that it shows. Everything else
 * the page gets from the routes of the protocols, as every client does.
 */
@NullMarked
package io.nereid.app.console;

import org.jspecify.annotations.NullMarked;
