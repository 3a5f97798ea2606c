// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Requests whose callers become known only after they have arrived. */
@NullMarked
package io.nereid.control.gateway.access;

import org.jspecify.annotations.NullMarked;
