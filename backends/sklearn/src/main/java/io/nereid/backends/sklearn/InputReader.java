// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.base.ServingException;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Converts input tensors to the table that an estimator takes: from one tensor with all columns, or from one tensor per
 * column. Immutable.
 */
final class InputReader {
    private static final List<DataType> TYPES = List.of(
            DataType.FP64,
            DataType.FP32,
            DataType.INT64,
            DataType.INT32,
            DataType.INT16,
            DataType.INT8,
            DataType.UINT8,
            DataType.UINT16,
            DataType.UINT32,
            DataType.BOOL,
            DataType.BYTES);

    private final String model;
    private final boolean matrix;
    private final int features;
    private final boolean batched;
    private final Map<String, Integer> places = new HashMap<>();

    InputReader(String model, List<TensorSpec> feeds, List<String> columns, int features, boolean batched) {
        this.model = model;
        this.features = features;
        this.batched = batched;
        matrix = feeds.size() == 1
                && !(features != 1 && columns.contains(feeds.get(0).name()));
        for (TensorSpec spec : feeds) {
            if (!TYPES.contains(spec.dataType())) {
                throw wrong("input '" + spec.name() + "' of type " + spec.dataType(), TYPES.toString());
            }
            check(spec, columns);
            int place = columns.indexOf(spec.name());
            places.put(spec.name(), matrix ? 0 : place >= 0 ? place : places.size());
        }
        if (!matrix && features >= 0 && feeds.size() != features) {
            throw wrong(feeds.size() + " inputs", "one input of all columns, or " + features + " of one column each");
        }
    }

    private void check(TensorSpec spec, List<String> columns) {
        Shape shape = spec.modelShape();
        int rank = shape.rank() - (batched ? 0 : 1);
        long width = rank == 1 ? shape.dim(shape.rank() - 1) : 1;
        long expected = matrix ? features : 1;
        if (rank < 0 || rank > 1 || (width >= 0 && expected >= 0 && width != expected) || spec.optional()) {
            throw wrong(
                    "input '" + spec.name() + "' of shape " + shape + (spec.optional() ? ", optional" : ""),
                    matrix ? features + " columns" : "one column for each input");
        }
        if (!matrix && !columns.isEmpty() && !columns.contains(spec.name())) {
            throw wrong("input '" + spec.name() + "'", "the columns " + columns);
        }
    }

    private ServingException wrong(String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + model + "' has " + what + " (expected: " + expected + ")", "correct its configuration");
    }

    /**
     * The table of a request's inputs.
     *
     * @throws ServingException INVALID_ARGUMENT for inputs of different lengths, or bytes that are not UTF-8 text
     */
    DataTable table(List<Tensor> inputs) {
        if (matrix) {
            Tensor input = inputs.get(0);
            Shape shape = input.shape();
            int count = (int) shape.elementCount();
            int columns = shape.rank() > 1 ? (int) shape.dim(shape.rank() - 1) : features < 0 ? 1 : features;
            int rows = shape.rank() > 0 ? (int) shape.dim(0) : 1;
            if (rows * (long) columns != count) {
                throw ServingException.invalidArgument("input '" + input.name() + "' is of shape " + shape
                        + " (expected: rows of " + features + " values)");
            }
            double[] values = new double[count];
            String[] texts = input.dataType() == DataType.BYTES ? new String[count] : null;
            read(input, values, texts, 0, 1);
            return new DataTable(rows, columns, values, texts);
        }
        return columns(inputs);
    }

    private DataTable columns(List<Tensor> inputs) {
        int rows = (int) inputs.get(0).shape().elementCount();
        int columns = places.size();
        DataTable table = DataTable.of(rows, columns);
        String[] texts = null;
        for (Tensor input : inputs) {
            if (input.shape().elementCount() != rows) {
                throw ServingException.invalidArgument("input '" + input.name() + "' has "
                        + input.shape().elementCount() + " values (expected: " + rows + ", as the first input)");
            }
            if (input.dataType() == DataType.BYTES && texts == null) {
                texts = new String[rows * columns];
            }
            Integer place = places.get(input.name());
            read(input, table.values(), texts, place == null ? 0 : place, columns);
        }
        return new DataTable(rows, columns, table.values(), texts);
    }

    /**
     * Writes the elements of a tensor to every {@code step}-th cell; cells that hold text are NaN in {@code values}.
     */
    private static void read(Tensor input, double[] values, @Nullable String @Nullable [] texts, int from, int step) {
        ByteBuffer b = input.buffer();
        int count = (int) input.shape().elementCount();
        if (input.dataType() == DataType.FP64 && step == 1) {
            b.asDoubleBuffer().get(values, from, count);
            return;
        }
        int at = from;
        for (int i = 0; i < count; i++, at += step) {
            values[at] = switch (input.dataType()) {
                case FP64 -> b.getDouble();
                case FP32 -> b.getFloat();
                case INT64, UINT64 -> b.getLong();
                case INT32 -> b.getInt();
                case UINT32 -> b.getInt() & 0xffffffffL;
                case INT16 -> b.getShort();
                case UINT16 -> b.getShort() & 0xffff;
                case INT8 -> b.get();
                case UINT8 -> b.get() & 0xff;
                case BOOL -> b.get() != 0 ? 1 : 0;
                default -> {
                    if (texts != null) {
                        texts[at] = text(input, b, i);
                    }
                    yield Double.NaN;
                }
            };
        }
    }

    private static String text(Tensor input, ByteBuffer b, int i) {
        int length = b.remaining() < 4 ? -1 : b.getInt();
        if (length < 0 || length > b.remaining()) {
            throw ServingException.invalidArgument("input '" + input.name() + "' of " + input.byteLength()
                    + " bytes does not hold the length-prefixed elements of shape " + input.shape());
        }
        try {
            String text = StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(b.slice(b.position(), length))
                    .toString();
            b.position(b.position() + length);
            return text;
        } catch (CharacterCodingException e) {
            throw ServingException.invalidArgument(
                    "element " + i + " of input '" + input.name() + "' is not valid UTF-8");
        }
    }
}
