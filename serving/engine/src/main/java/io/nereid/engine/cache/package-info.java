// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The response cache: cache keys, the in-memory cache and stores of plugins. */
@NullMarked
package io.nereid.engine.cache;

import org.jspecify.annotations.NullMarked;
