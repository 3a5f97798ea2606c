// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** A loaded version with its scheduler, statistics and cache, and the job that carries one request through it. */
@NullMarked
package io.nereid.engine.servable;

import org.jspecify.annotations.NullMarked;
