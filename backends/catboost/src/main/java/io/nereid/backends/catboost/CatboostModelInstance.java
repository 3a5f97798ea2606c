// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An instance of a CatBoost model, which scores few rows one by one, and many in blocks. Confined to one run at a time, except {@link #cancel}. */
final class CatboostModelInstance implements ModelInstance {
    private final CatboostModel model;
    private final List<TensorSpec> specs;
    private final ParsedModel parsed;
    private final TreeEnsemble ensemble;
    private final List<String> names;
    /** By column, its index among the numeric or the categorical columns. */
    private final int[] places;

    private final float[] numbers;
    private final int[] hashes;
    private final int[] bins;
    private final double[] sums;
    private final double[] answer;
    /** Many rows at once; null while only few were sent, and for trees that are not symmetric. */
    private @Nullable SymmetricBlock block;

    /** A buffer for the text of one category. */
    private byte[] text = new byte[64];

    private volatile boolean cancelled;

    CatboostModelInstance(CatboostModel model, List<TensorSpec> specs) {
        this.model = model;
        this.specs = specs;
        this.parsed = model.parsed();
        this.ensemble = parsed.ensemble();
        this.names = CatboostConfig.names(parsed);
        this.places = new int[parsed.features().size()];
        int floats = 0;
        int categories = 0;
        for (int i = 0; i < places.length; i++) {
            places[i] = parsed.features().get(i).categorical() ? categories++ : floats++;
        }
        this.numbers = new float[floats];
        this.hashes = new int[categories];
        this.bins = new int[ensemble.slots()];
        this.sums = new double[ensemble.outputs()];
        this.answer =
                new double[Math.max(ensemble.outputs(), 1 + parsed.labels().size())];
    }

    /** An input tensor: one column, or all of them. Confined to one run. */
    private record Column(int first, int width, DataType type, ByteBuffer values) {}

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        cancelled = false;
        boolean matrix = inputs.size() == 1 && !parsed.hasCategories();
        long rows = matrix && places.length == 1
                ? inputs.get(0).shape().elementCount()
                : inputs.get(0).shape().rank() == 0 ? 1 : inputs.get(0).shape().dim(0);
        List<Column> columns = new ArrayList<>(inputs.size());
        for (Tensor t : inputs) {
            int width = matrix ? places.length : 1;
            if (t.shape().elementCount() != rows * width) {
                throw ServingException.invalidArgument(
                        "input '" + t.name() + "' is of shape " + t.shape() + " (expected: [" + rows
                                + (width == 1 ? "" : "," + width) + "])",
                        "give a value for each column, NaN for what is missing");
            }
            columns.add(new Column(matrix ? 0 : names.indexOf(t.name()), width, t.dataType(), t.buffer()));
        }
        List<Writer> writers = new ArrayList<>();
        for (String name : outputs) {
            writers.add(new Writer(name, (int) rows));
        }
        SymmetricBlock many = rows >= SymmetricBlock.LEAST_ROWS ? block() : null;
        int held = 0;
        for (int row = 0; row < rows; row++) {
            if ((row & 1023) == 0 && cancelled) {
                throw ServingException.of(ErrorCode.CANCELLED, "the run was stopped");
            }
            for (Column column : columns) {
                read(column, row);
            }
            if (many == null) {
                ensemble.bin(numbers, hashes, bins);
                ensemble.sum(bins, sums);
                put(writers);
                continue;
            }
            many.set(held++, numbers, hashes);
            if (held == many.rows() || row + 1 == rows) {
                many.sum(held);
                for (int i = 0; i < held; i++) {
                    many.copySums(i, sums);
                    put(writers);
                }
                held = 0;
            }
        }
        try (TensorScope results = new TensorScope()) {
            for (Writer writer : writers) {
                results.add(writer.tensor((int) rows));
            }
            return results.release();
        }
    }

    private @Nullable SymmetricBlock block() {
        if (block == null && ensemble.symmetric()) {
            block = new SymmetricBlock(ensemble, model.borders());
        }
        return block;
    }

    private static void put(List<Writer> writers) {
        for (Writer writer : writers) {
            writer.put();
        }
    }

    private void read(Column column, int row) {
        ByteBuffer b = column.values();
        if (column.type() == DataType.BYTES) {
            int length = b.getInt();
            if (text.length < length) {
                text = new byte[length];
            }
            b.get(text, 0, length);
            hashes[places[column.first()]] = CityHash64.of(text, length);
            return;
        }
        int from = row * column.width();
        if (parsed.features().get(column.first()).categorical()) {
            // CatBoost hashes integer categories by their decimal text.
            long value = column.type() == DataType.INT64 ? b.getLong(8 * row) : b.getInt(4 * row);
            byte[] digits = Long.toString(value).getBytes(StandardCharsets.US_ASCII);
            hashes[places[column.first()]] = CityHash64.of(digits, digits.length);
            return;
        }
        for (int i = 0; i < column.width(); i++) {
            int at = from + i;
            numbers[places[column.first() + i]] = switch (column.type()) {
                case FP32 -> b.getFloat(4 * at);
                case FP64 -> (float) b.getDouble(8 * at);
                case INT64 -> b.getLong(8 * at);
                default -> b.getInt(4 * at);
            };
        }
    }

    /** Writes the values of an output to its tensor. Confined to one run. */
    private final class Writer {
        private final TensorSpec spec;
        private final PredictionType output;
        private final int width;
        private final double[] values;
        private int at;

        Writer(String name, int rows) {
            PredictionType found = PredictionType.of(name);
            TensorSpec of = null;
            for (TensorSpec s : specs) {
                of = s.name().equals(name) ? s : of;
            }
            if (found == null || of == null) {
                throw ServingException.invalidArgument("unexpected output '" + name + "' for model '"
                        + model.config().name() + "'");
            }
            spec = of;
            output = found;
            width = output.width(parsed);
            values = new double[Math.multiplyExact(rows, width)];
        }

        void put() {
            output.answer(parsed, sums, answer);
            System.arraycopy(answer, 0, values, at, width);
            at += width;
        }

        Tensor tensor(int rows) {
            int outer = model.config().batched() ? 0 : 1;
            Shape shape = spec.modelShape().rank() > outer ? Shape.of(rows, width) : Shape.of(rows);
            boolean labels = output == PredictionType.PREDICT && parsed.classifies() && !parsed.manyLabels();
            if (spec.dataType() == DataType.BYTES) {
                return texts(shape);
            }
            for (int i = 0; labels && i < values.length; i++) {
                values[i] = parsed.labels().get((int) values[i]) instanceof Double d ? d : values[i];
            }
            return Tensor.ofDoubles(spec.name(), spec.dataType(), shape, values);
        }

        private Tensor texts(Shape shape) {
            byte[][] names = new byte[parsed.labels().size()][];
            for (int i = 0; i < names.length; i++) {
                names[i] = String.valueOf(parsed.labels().get(i)).getBytes(StandardCharsets.UTF_8);
            }
            byte[][] texts = new byte[values.length][];
            for (int i = 0; i < texts.length; i++) {
                texts[i] = names[(int) values[i]];
            }
            return Tensor.ofBytes(spec.name(), shape, texts);
        }
    }

    @Override
    public void cancel() {
        cancelled = true;
    }

    @Override
    public void close() {}
}
