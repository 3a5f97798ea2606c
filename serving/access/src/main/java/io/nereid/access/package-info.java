// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Who may do what on a server with credentials: the policy, and its configuration. */
@NullMarked
package io.nereid.access;

import org.jspecify.annotations.NullMarked;
