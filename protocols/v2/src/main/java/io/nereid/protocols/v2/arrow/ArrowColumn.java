// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import java.util.List;

/**
 * A column of a table, with its parts in all record batches. Immutable.
 *
 * @param field what the schema says of it
 * @param chunks one for each record batch
 */
record ArrowColumn(ArrowField field, List<ColumnChunk> chunks) {
    long elements() {
        long sum = 0;
        for (ColumnChunk chunk : chunks) {
            sum += chunk.elements();
        }
        return sum;
    }

    boolean hasNulls() {
        for (ColumnChunk chunk : chunks) {
            if (chunk.nulls() > 0) {
                return true;
            }
        }
        return false;
    }
}
