// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import java.util.concurrent.CompletableFuture;

/** A function from rows of numbers to numbers. Implementations are thread-safe. */
interface RowModel {
    /** Gives the rows to ask about, one after the other; may be asked for a row once. */
    @FunctionalInterface
    interface Source {
        /** Fills {@code to} with a row. */
        void row(long index, double[] to);
    }

    /** Takes answers, in the order of the rows, one call at a time. */
    @FunctionalInterface
    interface Sink {
        /** The answer to a row: {@code width} numbers from {@code at} on, lent. */
        void answer(long index, double[] values, int at, int width);
    }

    /**
     * Asks about rows.
     *
     * @return ends when every answer was taken, or with a ServingException; on a thread that may compute
     */
    CompletableFuture<Void> ask(long rows, Source source, Sink sink);

    /** Asks about rows that are there. */
    default CompletableFuture<double[][]> ask(double[][] rows) {
        double[][] answers = new double[rows.length][];
        return ask(
                        rows.length,
                        (i, to) -> System.arraycopy(rows[(int) i], 0, to, 0, to.length),
                        (i, values, at, width) ->
                                answers[(int) i] = java.util.Arrays.copyOfRange(values, at, at + width))
                .thenApply(done -> answers);
    }
}
