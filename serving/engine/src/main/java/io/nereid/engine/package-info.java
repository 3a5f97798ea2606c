// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The inference engine without a network: {@link Engine} resolves, validates, schedules and runs requests. Embeddable
 * in any JVM.
 */
@NullMarked
package io.nereid.engine;

import org.jspecify.annotations.NullMarked;
