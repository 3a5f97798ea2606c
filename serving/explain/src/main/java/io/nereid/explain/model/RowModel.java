// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.model;

import java.util.concurrent.CompletableFuture;

/** A function from rows of numbers to predictions. Implementations are thread-safe. */
public interface RowModel {
    /** Supplies the rows in order; each row may be requested once. */
    @FunctionalInterface
    interface Source {
        /** Fills {@code to} with a row. */
        void row(long index, double[] to);
    }

    /** Receives the predictions, in the order of the rows, one call at a time. */
    @FunctionalInterface
    interface Sink {
        /**
         * Receives the prediction of a row: {@code width} numbers from {@code at} on. The array is valid during the
         * call.
         */
        void answer(long index, double[] values, int at, int width);
    }

    /**
     * Predicts rows.
     *
     * @return completes when all predictions have been received, or fails with a ServingException; on a thread that may
     *     compute
     */
    CompletableFuture<Void> ask(long rows, Source source, Sink sink);

    /** Predicts rows that are in memory. */
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
