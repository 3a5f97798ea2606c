// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The planner: resources and observed state in, a plan out. */
@NullMarked
package io.nereid.control.core.plan;

import org.jspecify.annotations.NullMarked;
