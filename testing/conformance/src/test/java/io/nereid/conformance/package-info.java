// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Rules of the whole house, and the whole program across sockets. */
@NullMarked
package io.nereid.conformance;

import org.jspecify.annotations.NullMarked;
