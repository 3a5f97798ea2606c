// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Computes the element-wise sum and difference of two inputs. Integers wrap around; FP16 and BF16 are computed in FP32
 * and rounded to nearest, ties to even. Thread-safe.
 */
public final class AddSubModel extends BuiltInModel {
    public AddSubModel(ModelConfig config) {
        super(config);
    }

    /**
     * Completes a configuration; by default {@code INPUT0} and {@code INPUT1} to {@code OUTPUT0} and {@code OUTPUT1},
     * FP32 [-1].
     */
    public static ModelConfig complete(ModelConfig config) {
        List<TensorSpec> inputs = config.inputs();
        List<TensorSpec> outputs = config.outputs();
        TensorSpec like = !inputs.isEmpty()
                ? inputs.get(0)
                : !outputs.isEmpty() ? outputs.get(0) : new TensorSpec("", DataType.FP32, Shape.of(-1));
        inputs = inputs.isEmpty() ? pair("INPUT", like) : inputs;
        outputs = outputs.isEmpty() ? pair("OUTPUT", like) : outputs;
        if (inputs.size() != 2 || outputs.size() != 2) {
            throw wrong(config, "has " + inputs.size() + " inputs and " + outputs.size() + " outputs", "two of each");
        }
        List<TensorSpec> all = new ArrayList<>(inputs);
        all.addAll(outputs);
        for (TensorSpec spec : all) {
            if (spec.dataType() != like.dataType() || !spec.shape().equals(like.shape()) || spec.optional()) {
                throw wrong(
                        config,
                        "has '" + spec.name() + "' " + spec.dataType() + spec.shape()
                                + (spec.optional() ? " optional" : ""),
                        "all four " + like.dataType() + like.shape() + ", none optional");
            }
        }
        if (like.dataType() == DataType.BOOL || like.dataType() == DataType.BYTES) {
            throw wrong(config, "adds tensors of type " + like.dataType(), "a numeric type");
        }
        return with(config, inputs, outputs);
    }

    private static List<TensorSpec> pair(String name, TensorSpec like) {
        return List.of(
                new TensorSpec(name + '0', like.dataType(), like.shape()),
                new TensorSpec(name + '1', like.dataType(), like.shape()));
    }

    @Override
    public boolean inline() {
        return false;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        boolean inOrder = inputs.get(0).name().equals(inputs().get(0).name());
        Tensor a = inputs.get(inOrder ? 0 : 1);
        Tensor b = inputs.get(inOrder ? 1 : 0);
        if (!a.shape().equals(b.shape())) {
            throw ServingException.invalidArgument("inputs '" + a.name() + "' " + a.shape() + " and '" + b.name() + "' "
                    + b.shape() + " differ (expected: equal shapes)");
        }
        try (TensorScope results = new TensorScope()) {
            for (String output : outputs) {
                Tensor result = results.allocate(output, a.dataType(), a.shape());
                int sign = output.equals(outputs().get(0).name()) ? 1 : -1;
                compute(a.dataType(), a.buffer(), b.buffer(), result.buffer(), sign);
            }
            return results.release();
        }
    }

    /** Computes {@code a + sign * b} element by element. */
    static void compute(DataType type, ByteBuffer a, ByteBuffer b, ByteBuffer to, int sign) {
        int bytes = to.remaining();
        switch (type) {
            case INT8, UINT8 -> {
                for (int i = 0; i < bytes; i++) {
                    to.put(i, (byte) (a.get(i) + sign * b.get(i)));
                }
            }
            case INT16, UINT16 -> {
                for (int i = 0; i < bytes; i += 2) {
                    to.putShort(i, (short) (a.getShort(i) + sign * b.getShort(i)));
                }
            }
            case INT32, UINT32 -> {
                for (int i = 0; i < bytes; i += 4) {
                    to.putInt(i, a.getInt(i) + sign * b.getInt(i));
                }
            }
            case INT64, UINT64 -> {
                for (int i = 0; i < bytes; i += 8) {
                    to.putLong(i, a.getLong(i) + sign * b.getLong(i));
                }
            }
            case FP16 -> {
                for (int i = 0; i < bytes; i += 2) {
                    float sum = HalfFloats.fromHalf(a.getShort(i)) + sign * HalfFloats.fromHalf(b.getShort(i));
                    to.putShort(i, HalfFloats.toHalf(sum));
                }
            }
            case BF16 -> {
                for (int i = 0; i < bytes; i += 2) {
                    float sum = HalfFloats.fromBrain(a.getShort(i)) + sign * HalfFloats.fromBrain(b.getShort(i));
                    to.putShort(i, HalfFloats.toBrain(sum));
                }
            }
            case FP32 -> {
                for (int i = 0; i < bytes; i += 4) {
                    to.putFloat(i, a.getFloat(i) + sign * b.getFloat(i));
                }
            }
            case FP64 -> {
                for (int i = 0; i < bytes; i += 8) {
                    to.putDouble(i, a.getDouble(i) + sign * b.getDouble(i));
                }
            }
            case BOOL, BYTES -> throw new AssertionError("rejected when loading");
        }
    }
}
