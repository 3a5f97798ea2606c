// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The plan of one component of a service: its workload, made of the specification and the chosen runtime. */
@NullMarked
package io.nereid.control.core.component;

import org.jspecify.annotations.NullMarked;
