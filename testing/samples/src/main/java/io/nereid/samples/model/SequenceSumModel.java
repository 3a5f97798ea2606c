// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * A model that sums the values of a sequence: {@code INPUT} [1] to {@code OUTPUT} [1], of type INT32, INT16, INT8, FP32
 * or FP64, with a row for each sequence. The control inputs are named after their kind: {@code START}, {@code END},
 * {@code READY} and {@code CORRID}. Confined to one instance.
 */
public abstract class SequenceSumModel extends BuiltInModel {
    private static final Set<DataType> TYPES =
            Set.of(DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP32, DataType.FP64);

    SequenceSumModel(ModelConfig config) {
        super(config);
    }

    public static ModelConfig complete(ModelConfig config, String... controls) {
        SequenceBatching sequence = config.sequence();
        List<String> given = sequence == null
                ? List.of()
                : sequence.controls().stream().map(SequenceControl::name).toList();
        if (!given.containsAll(List.of(controls))) {
            throw wrong(
                    config,
                    "'" + String.join("', '", controls) + "' must be configured as the control inputs, got " + given,
                    "sequence_batching with a control_input of each of these names");
        }
        List<TensorSpec> inputs = config.inputs().isEmpty()
                ? List.of(new TensorSpec("INPUT", DataType.INT32, Shape.of(1)))
                : config.inputs();
        DataType type = inputs.get(0).dataType();
        List<TensorSpec> outputs =
                config.outputs().isEmpty() ? List.of(new TensorSpec("OUTPUT", type, Shape.of(1))) : config.outputs();
        if (inputs.size() != 1
                || outputs.size() != 1
                || !TYPES.contains(type)
                || outputs.get(0).dataType() != type
                || !inputs.get(0).modelShape().equals(Shape.of(1))
                || !outputs.get(0).modelShape().equals(Shape.of(1))) {
            throw wrong(
                    config,
                    "has inputs " + inputs + " and outputs " + outputs,
                    "one of each, of one type of " + TYPES + " and dims [1]");
        }
        return with(config, inputs, outputs);
    }

    @Override
    public final boolean inline() {
        return false;
    }

    /** Processes one row and returns the sum. */
    abstract double add(List<Tensor> inputs, int row, double value);

    @Override
    public final List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        Tensor in = named(inputs, inputs().get(0).name());
        Tensor out = Tensor.allocate(outputs().get(0).name(), in.dataType(), in.shape());
        List<Tensor> result = new ArrayList<>();
        try {
            int rows = (int) in.shape().elementCount();
            for (int row = 0; row < rows; row++) {
                put(out, row, add(inputs, row, get(in, row)));
            }
            for (String ignored : outputs) {
                result.add(out.retain());
            }
            return result;
        } finally {
            out.close();
        }
    }

    /** Returns whether a control flag is set, which any value except 0 means. */
    static boolean yes(List<Tensor> inputs, String control, int row) {
        return get(named(inputs, control), row) != 0;
    }

    static double get(Tensor t, int row) {
        ByteBuffer from = t.buffer();
        return switch (t.dataType()) {
            case BOOL, INT8 -> from.get(row);
            case INT16 -> from.getShort(2 * row);
            case INT32 -> from.getInt(4 * row);
            case FP32 -> from.getFloat(4 * row);
            case FP64 -> from.getDouble(8 * row);
            default -> throw new IllegalStateException("tensor '" + t.name() + "' is of type " + t.dataType());
        };
    }

    private static void put(Tensor t, int row, double value) {
        ByteBuffer to = t.buffer();
        switch (t.dataType()) {
            case INT8 -> to.put(row, (byte) (long) value);
            case INT16 -> to.putShort(2 * row, (short) (long) value);
            case INT32 -> to.putInt(4 * row, (int) (long) value);
            case FP32 -> to.putFloat(4 * row, (float) value);
            default -> to.putDouble(8 * row, value);
        }
    }
}
