// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The configuration file of {@code nereid serve}, and the commands that show what is in force. */
@NullMarked
package io.nereid.app.config;

import org.jspecify.annotations.NullMarked;
