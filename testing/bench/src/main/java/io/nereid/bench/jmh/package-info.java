// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Micro-benchmarks for JMH. */
@NullMarked
package io.nereid.bench.jmh;

import org.jspecify.annotations.NullMarked;
