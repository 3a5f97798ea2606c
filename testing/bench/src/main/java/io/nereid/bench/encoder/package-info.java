// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Benchmarks of encoders of texts. */
@NullMarked
package io.nereid.bench.encoder;

import org.jspecify.annotations.NullMarked;
