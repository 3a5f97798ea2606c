// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Value types and interfaces that the engine, the protocols and plugins share: requests, responses, model
 * configuration, model control. No behaviour beyond the validation of values.
 */
@NullMarked
package io.nereid.spi;

import org.jspecify.annotations.NullMarked;
