// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

/**
 * How the rows of a batch are padded to one length. Immutable.
 *
 * @param length the length of every row, 0 for the length of the longest row, or -1 for no padding
 * @param multiple the length is rounded up to a multiple of this; 1 for no rounding
 * @param left whether padding comes before the text
 * @param id the id of the padding token
 * @param type the type id of the padding token
 * @param special whether special tokens (begin and end) are added to the text
 */
record PaddingStrategy(int length, int multiple, boolean left, long id, long type, boolean special) {
    /** The same padding with another length. */
    PaddingStrategy to(int newLength) {
        return new PaddingStrategy(newLength, multiple, left, id, type, special);
    }

    /** The padded length of a batch whose longest row has this many tokens. */
    int of(int longest) {
        int wanted = Math.max(length, longest);
        return length < 0 ? longest : (wanted + multiple - 1) / multiple * multiple;
    }
}
