// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.List;

/**
 * Flat outputs that the server splits by the shape of each request's input. Immutable.
 *
 * @param targets the outputs
 * @param source the input
 */
public record BatchOutput(List<String> targets, String source) {}
