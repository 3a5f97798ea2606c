// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TODO. */
@NullMarked
package io.nereid.control.gateway.activator;

import org.jspecify.annotations.NullMarked;
