// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The planner: resources and what is observed in, a plan out. */
@NullMarked
package io.nereid.control.core;

import org.jspecify.annotations.NullMarked;
