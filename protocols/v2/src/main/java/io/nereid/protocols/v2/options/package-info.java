// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What an operator may configure of the V2 protocol, and the groups of calls that can be restricted. */
@NullMarked
package io.nereid.protocols.v2.options;

import org.jspecify.annotations.NullMarked;
