// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

/**
 * A version with a weight. Immutable.
 *
 * @param version the version
 * @param weight above 0
 */
public record WeightedVersion(long version, double weight) {}
