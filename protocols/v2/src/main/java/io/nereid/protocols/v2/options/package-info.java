// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What an operator may configure of the V2 protocol. */
@NullMarked
package io.nereid.protocols.v2.options;

import org.jspecify.annotations.NullMarked;
