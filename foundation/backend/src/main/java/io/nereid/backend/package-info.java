// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What an execution technology implements. */
@NullMarked
package io.nereid.backend;

import org.jspecify.annotations.NullMarked;
