// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

/**
 * The expected checksum of an object. Immutable.
 *
 * @param algorithm of the digest
 * @param hex the digest in lower-case hexadecimal
 */
public record Checksum(ChecksumAlgorithm algorithm, String hex) {}
