// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;

/**
 * The positions of the rows in a request's inputs, to make slices of some rows without a copy; and the concatenation of
 * the outputs of several runs. Immutable; does not own the inputs.
 */
final class TensorRows {
    private static final int[] EVEN = {};

    private final List<Tensor> inputs;
    private final int rows;
    /**
     * For each input: the offset of each row and the end of the last; {@link #EVEN} if all rows have the same length.
     */
    private final int[][] begins;

    /** Creates the index of validated inputs, all of which have this number of rows. */
    TensorRows(List<Tensor> inputs, int rows) {
        this.inputs = inputs;
        this.rows = rows;
        this.begins = new int[inputs.size()][];
        for (int i = 0; i < begins.length; i++) {
            Tensor t = inputs.get(i);
            begins[i] = t.dataType() == DataType.BYTES ? begins(t, rows) : EVEN;
        }
    }

    private static int[] begins(Tensor t, int rows) {
        // Elements of BYTES are preceded by their length, so the offsets must be found by reading all of them.
        int[] begins = new int[rows + 1];
        long perRow = t.shape().elementCount() / rows;
        int at = 0;
        for (int row = 0; row < rows; row++) {
            begins[row] = at;
            for (long i = 0; i < perRow; i++) {
                at += 4 + t.region().getInt(t.offset() + at);
            }
        }
        begins[rows] = at;
        return begins;
    }

    /** Returns rows of every input as slices that the caller owns. The inputs must be open. */
    List<Tensor> slice(int from, int count) {
        List<Tensor> slices = new ArrayList<>(inputs.size());
        for (int i = 0; i < inputs.size(); i++) {
            Tensor t = inputs.get(i);
            int begin = begin(i, from);
            slices.add(t.retainSlice(t.shape().withFirst(count), begin, begin(i, from + count) - begin));
        }
        return slices;
    }

    private int begin(int input, int row) {
        int[] known = begins[input];
        return known != EVEN ? known[row] : inputs.get(input).byteLength() / rows * row;
    }

    /**
     * Concatenates the outputs of several runs along the first dimension, in the order of the first run's list. The
     * caller keeps the runs' outputs and owns the result.
     *
     * @throws ServingException INTERNAL when an output is missing in a run, or has another type or shape
     */
    static List<Tensor> join(List<List<Tensor>> runs) {
        List<Tensor> joined = new ArrayList<>();
        try {
            for (Tensor first : runs.get(0)) {
                List<Tensor> parts = new ArrayList<>(runs.size());
                for (List<Tensor> run : runs) {
                    parts.add(like(first, run));
                }
                joined.add(joined(parts));
            }
            return joined;
        } catch (RuntimeException e) {
            Tensor.closeAll(joined);
            throw e;
        }
    }

    private static Tensor like(Tensor first, List<Tensor> run) {
        for (Tensor t : run) {
            if (t.name().equals(first.name())) {
                boolean fits = t.dataType() == first.dataType()
                        && t.shape().rank() > 0
                        && first.shape().rank() > 0
                        && t.shape().sameBeyondFirst(first.shape());
                if (!fits) {
                    throw ServingException.of(
                            ErrorCode.INTERNAL,
                            "output '" + first.name() + "' of a request that ran in several batches was " + first
                                    + " in one and " + t
                                    + " in another (expected: the same beyond the first dimension)",
                            "send the request in parts, each of which fits into one batch");
                }
                return t;
            }
        }
        throw ServingException.of(
                ErrorCode.INTERNAL,
                "output '" + first.name() + "' of a request that ran in several batches is missing in one of them"
                        + " (expected: it to be given)");
    }

    private static Tensor joined(List<Tensor> parts) {
        Tensor first = parts.get(0);
        long bytes = 0;
        long rows = 0;
        for (Tensor t : parts) {
            bytes += t.byteLength();
            rows += t.shape().dim(0);
        }
        if (bytes > Integer.MAX_VALUE - MemoryRegion.ALIGNMENT) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "output '" + first.name() + "' of a request of " + rows + " rows takes " + bytes
                            + " bytes (expected: < 2 GiB)",
                    "send the request in parts");
        }
        MemoryRegion region = MemoryRegion.allocate((int) bytes);
        int at = 0;
        for (Tensor t : parts) {
            region.setBytes(at, t.region(), t.offset(), t.byteLength());
            at += t.byteLength();
        }
        return Tensor.over(first.name(), first.dataType(), first.shape().withFirst(rows), region, 0, (int) bytes);
    }
}
