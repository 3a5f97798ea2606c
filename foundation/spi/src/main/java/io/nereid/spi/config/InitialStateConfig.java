// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import io.nereid.tensor.Shape;

/**
 * The state for the first request of a sequence. Immutable.
 *
 * @param name a name for error messages
 * @param shape concrete (without -1), and without the batch dimension
 * @param file a file in the directory {@code initial_state} of the model, with the bytes of one row; empty for
 *     zeros
 */
public record InitialStateConfig(String name, Shape shape, String file) {}
