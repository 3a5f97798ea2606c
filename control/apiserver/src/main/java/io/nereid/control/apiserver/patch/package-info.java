// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Patches of resources, and server-side apply with its managed fields. */
@NullMarked
package io.nereid.control.apiserver.patch;

import org.jspecify.annotations.NullMarked;
