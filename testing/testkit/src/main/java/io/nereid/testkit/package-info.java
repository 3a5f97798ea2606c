// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Fakes, contract tests and test listeners for the other modules. Nothing here is part of a running server. */
@NullMarked
package io.nereid.testkit;

import org.jspecify.annotations.NullMarked;
