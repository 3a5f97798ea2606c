// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

/** The checksum algorithms of stores. */
public enum ChecksumAlgorithm {
    /** MD5. */
    MD5,
    /** An entity tag that looks like an MD5. It usually is one, but not for objects encrypted with KMS. */
    TAG_MD5,
    /** CRC-32C, eight hexadecimal digits. */
    CRC32C,
    /** SHA-256. */
    SHA256,
    /** Git's blob id: the SHA-1 of a header and the content. */
    GIT_BLOB
}
