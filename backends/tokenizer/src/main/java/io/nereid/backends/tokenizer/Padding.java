// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

/**
 * How the rows of a run are brought to one length. Immutable.
 *
 * @param length of every row, or 0 for that of the longest, or -1 for no padding
 * @param multiple of which the length is made one; 1 for none
 * @param left whether padding comes before the text
 * @param id the token that pads
 * @param type its type
 * @param special whether the tokens that mark begin and end are added
 */
record Padding(int length, int multiple, boolean left, long id, long type, boolean special) {
    /** The same padding to another length. */
    Padding to(int newLength) {
        return new Padding(newLength, multiple, left, id, type, special);
    }

    /** The length of rows of which the longest has so many tokens. */
    int of(int longest) {
        int wanted = Math.max(length, longest);
        return length < 0 ? longest : (wanted + multiple - 1) / multiple * multiple;
    }
}
