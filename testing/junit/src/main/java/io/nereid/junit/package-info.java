// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models for tests in JUnit 5. */
@NullMarked
package io.nereid.junit;

import org.jspecify.annotations.NullMarked;
