// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Fakes, contract tests and test listeners for the tests of other modules. Not part of a running server. */
@Experimental
@NullMarked
package io.nereid.testkit;

import io.nereid.base.Experimental;
import org.jspecify.annotations.NullMarked;
