// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.backends.pmml.PmmlModel.Answer;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Converts input tensors to rows of field values, and results to output tensors. Immutable. */
final class RowConversion {
    private final List<InputField> fields;
    private final @Nullable String matrix;
    private final Map<String, Integer> places = new HashMap<>();

    RowConversion(List<InputField> fields, @Nullable String matrix) {
        this.fields = fields;
        this.matrix = matrix;
        for (int i = 0; i < fields.size(); i++) {
            places.put(fields.get(i).name(), i);
        }
    }

    /**
     * The rows of a request.
     *
     * @throws ServingException INVALID_ARGUMENT for inputs of different lengths, or values that their field does not
     *     accept
     */
    @Nullable Object[][] read(List<Tensor> inputs) {
        if (inputs.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the request has no inputs (expected: fields, one tensor each)", "its fields are " + names());
        }
        Tensor first = inputs.get(0);
        boolean whole = first.name().equals(matrix);
        if (inputs.size() > 1) {
            for (Tensor input : inputs) {
                if (input.name().equals(matrix)) {
                    throw ServingException.invalidArgument("input '" + input.name()
                            + "', which contains all fields, is combined with single fields (expected: either)");
                }
            }
        }
        long count = first.shape().elementCount();
        int width = whole ? fields.size() : 1;
        if (count % width != 0) {
            throw ServingException.invalidArgument("input '" + first.name() + "' is of shape " + first.shape()
                    + " (expected: rows of " + width + " values)");
        }
        int rows = (int) (count / width);
        @Nullable Object[][] cells = new Object[rows][fields.size()];
        for (Tensor input : inputs) {
            if (input.shape().elementCount() != count) {
                throw ServingException.invalidArgument(
                        "input '" + input.name() + "' has " + input.shape().elementCount() + " values (expected: "
                                + count + ", as '" + first.name() + "')");
            }
            Integer place = places.get(input.name());
            read(input, cells, whole || place == null ? 0 : place, width);
        }
        return cells;
    }

    private String names() {
        return String.join(", ", fields.stream().map(InputField::name).toList());
    }

    private void read(Tensor input, @Nullable Object[][] cells, int from, int width) {
        ByteBuffer b = input.buffer();
        for (int row = 0; row < cells.length; row++) {
            for (int c = from; c < from + width; c++) {
                InputField field = fields.get(c);
                cells[row][c] = switch (input.dataType()) {
                    case FP64 -> field.number(b.getDouble(), row);
                    case FP32 -> field.number(b.getFloat(), row);
                    case INT64 -> field.whole(b.getLong(), row);
                    case INT32 -> field.whole(b.getInt(), row);
                    case UINT32 -> field.whole(b.getInt() & 0xffffffffL, row);
                    case INT16 -> field.whole(b.getShort(), row);
                    case UINT16 -> field.whole(b.getShort() & 0xffff, row);
                    case INT8 -> field.whole(b.get(), row);
                    case UINT8 -> field.whole(b.get() & 0xff, row);
                    case BOOL -> field.whole(b.get() != 0 ? 1 : 0, row);
                    case BYTES -> field.text(text(input, b, row), row);
                    default ->
                        throw ServingException.invalidArgument(
                                "input '" + input.name() + "' is of type " + input.dataType() + " (expected: FP64)");
                };
            }
        }
    }

    private static String text(Tensor input, ByteBuffer b, int row) {
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
            throw ServingException.invalidArgument("input '" + input.name() + "' is not valid UTF-8 in row " + row);
        }
    }

    /** Adds the tensor of one output for all rows. */
    static void write(Answer answer, Object[][] results, TensorScope tensors) {
        Shape shape = Shape.of(results.length);
        if (answer.type() == DataType.BYTES) {
            tensors.add(texts(answer, results, shape));
            return;
        }
        ByteBuffer to = tensors.allocate(answer.name(), answer.type(), shape).buffer();
        for (int row = 0; row < results.length; row++) {
            put(to, answer, results[row][answer.place()], row);
        }
    }

    private static void put(ByteBuffer to, Answer answer, @Nullable Object value, int row) {
        switch (answer.type()) {
            case FP64 -> to.putDouble(number(answer, value, row));
            case FP32 -> to.putFloat((float) number(answer, value, row));
            case INT64 -> to.putLong(whole(answer, value, row));
            case INT32 -> to.putInt((int) whole(answer, value, row));
            default -> to.put((byte) (whole(answer, value, row) != 0 ? 1 : 0));
        }
    }

    private static double number(Answer answer, @Nullable Object value, int row) {
        if (value instanceof Number n) {
            return n.doubleValue();
        }
        if (value instanceof Boolean b) {
            return b ? 1 : 0;
        }
        if (value == null || value.toString().isEmpty()) {
            return Double.NaN;
        }
        try {
            return Double.parseDouble(value.toString());
        } catch (NumberFormatException e) {
            throw ServingException.internal(
                    "output '" + answer.name() + "' is '" + value + "' in row " + row + ", which is not a number", e);
        }
    }

    private static long whole(Answer answer, @Nullable Object value, int row) {
        if (value instanceof Long n) {
            return n;
        }
        double number = number(answer, value, row);
        if (Double.isNaN(number)) {
            throw ServingException.invalidArgument(
                    "row " + row + " has no '" + answer.name() + "', and " + answer.type() + " cannot say so",
                    "give the fields that the model needs, or configure the output as TYPE_FP64 to get NaN");
        }
        return (long) number;
    }

    private static Tensor texts(Answer answer, Object[][] results, Shape shape) {
        byte[][] texts = new byte[results.length][];
        for (int row = 0; row < texts.length; row++) {
            Object value = results[row][answer.place()];
            texts[row] = (value == null ? "" : value.toString()).getBytes(StandardCharsets.UTF_8);
        }
        return Tensor.ofBytes(answer.name(), shape, texts);
    }
}
