// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The decision on access in front of every protocol: its interface, and the policy of a server without credentials. */
@NullMarked
package io.nereid.transport.api.access;

import org.jspecify.annotations.NullMarked;
