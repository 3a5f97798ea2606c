// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Built-in models for tests and examples, most of them the counterparts of Triton's test backends. */
@NullMarked
package io.nereid.backends.java.samples;

import org.jspecify.annotations.NullMarked;
