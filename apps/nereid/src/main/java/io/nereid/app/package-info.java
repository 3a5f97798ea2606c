// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The program {@code nereid}: its entry point, which composes the commands of the subpackages. */
@NullMarked
package io.nereid.app;

import org.jspecify.annotations.NullMarked;
