// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * What the scenarios measure with: load generators, servers in processes of their own, process statistics and
 * reference implementations.
 */
@NullMarked
package io.nereid.bench.harness;

import org.jspecify.annotations.NullMarked;
