// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

/**
 * The part of a column that one record batch has: positions in the body of the request, all of them checked. Immutable.
 *
 * @param elements the number of values, those within fixed-size lists counted each
 * @param nulls how many of them are null
 * @param validity where the bits begin that are 0 for nulls; only valid when there are nulls
 * @param values where the values begin; of texts, the offsets or views
 * @param data where the bytes of the texts begin, and their number, for each buffer of texts
 */
@SuppressWarnings("ArrayRecordComponent") // never changed, never compared
record ColumnChunk(int elements, int nulls, int validity, int values, int[] data) {
    static final int[] NO_DATA = {};
}
