// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** How the commands reach a server: addresses, encryption and credentials. */
@NullMarked
package io.nereid.app.connection;

import org.jspecify.annotations.NullMarked;
