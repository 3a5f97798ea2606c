// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Who may do what: the operations of a server, the permissions that they need, and the callers that hold permissions. */
@NullMarked
package io.nereid.base.access;

import org.jspecify.annotations.NullMarked;
