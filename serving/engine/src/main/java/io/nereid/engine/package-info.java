// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The whole server without a network: resolves, validates, schedules and runs requests; embeddable in any JVM. */
@NullMarked
package io.nereid.engine;

import org.jspecify.annotations.NullMarked;
