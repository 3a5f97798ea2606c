// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

/** How the values of a column lie in its buffers, after the one that marks nulls. Immutable. */
enum ColumnLayout {
    /** One buffer of values of the same number of bytes. */
    FIXED(1),
    /** One buffer of bits, the lowest of a byte first. */
    BITS(1),
    /** 32-bit offsets, one more than values, and the bytes that they are offsets of. */
    OFFSETS(2),
    /** The same with 64-bit offsets. */
    LARGE_OFFSETS(2),
    /** Views of 16 bytes, and any number of buffers that the longer ones refer to. */
    VIEWS(1);

    /** The number of buffers; of views, without those that they refer to. */
    final int buffers;

    ColumnLayout(int buffers) {
        this.buffers = buffers;
    }

    boolean isText() {
        return this == OFFSETS || this == LARGE_OFFSETS || this == VIEWS;
    }
}
