// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Nereid's own parameters of a model's configuration, read and verified: what {@code parameters} of {@code config.pbtxt} says besides
 * the fields that Triton has.
 */
@NullMarked
package io.nereid.spi.config.parameters;

import org.jspecify.annotations.NullMarked;
