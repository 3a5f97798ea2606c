// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.common;

import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.TfDataType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Converts a model's outputs to classes with scores, or to one number for each example. Signatures of TensorFlow name
 * the outputs ({@code classes}, {@code scores}, {@code outputs}); for other models the first output of a suitable type
 * is used. Holds no state.
 */
public final class ExampleOutputs {
    private static final byte[] NO_LABEL = {};

    private ExampleOutputs() {}

    /**
     * One class of one example.
     *
     * @param label its name in UTF-8; empty when the model does not name classes
     * @param score its score; 0 when the model does not return scores
     */
    public record Scored(byte[] label, float score) {
        @Override
        public boolean equals(@Nullable Object o) {
            return o instanceof Scored s && Arrays.equals(label, s.label) && score == s.score;
        }

        @Override
        public int hashCode() {
            return Arrays.hashCode(label) * 31 + Float.hashCode(score);
        }
    }

    /** Rejects a signature of another method; called if the options demand the check. */
    static void check(Signature signature, String method) {
        if (!signature.method().equals(method)) {
            String what = method.equals(Signature.CLASSIFY) ? "classification" : "regression";
            throw ServingException.invalidArgument(
                    "Expected " + what + " signature method_name to be " + method + ". Was: " + signature.method());
        }
    }

    /**
     * The classes of each example.
     *
     * @param exact whether the outputs are TensorFlow's: of its types, and under its keys
     * @throws ServingException INVALID_ARGUMENT when the outputs are not classes or scores
     */
    public static List<List<Scored>> classes(List<Tensor> outputs, long examples, boolean exact) {
        Tensor labels = named(outputs, "classes");
        Tensor scores = named(outputs, "scores");
        boolean derived = labels == null && scores == null && !exact;
        if (derived) {
            labels = ofType(outputs, true);
            scores = ofType(outputs, false);
            if (labels != null && scores != null && !labels.shape().equals(scores.shape())) {
                labels = null;
            }
        }
        if (labels == null && scores == null) {
            throw ServingException.invalidArgument(
                    "Expected classification signature outputs to contain \"classes\" and/or \"scores\"",
                    "the model gives " + names(outputs) + "; ask for them with predict");
        }
        if (labels != null && labels.dataType() != DataType.BYTES) {
            throw ServingException.invalidArgument(
                    "Expected classes Tensor of DT_STRING. Got: " + typeOf(labels), "output '" + labels.name() + "'");
        }
        if (scores != null && !(exact ? scores.dataType() == DataType.FP32 : isNumber(scores.dataType()))) {
            throw ServingException.invalidArgument(
                    "Expected scores Tensor of DT_FLOAT. Got: " + typeOf(scores), "output '" + scores.name() + "'");
        }
        long width = width(labels, derived, examples, "classes");
        long scoreWidth = width(scores, derived, examples, "scores");
        if (labels != null && scores != null && width != scoreWidth) {
            throw ServingException.invalidArgument(
                    "Tensors class and score should match in dim_size(1). Got " + width + " vs. " + scoreWidth);
        }
        return join(labels, scores, (int) examples, (int) Math.max(width, scoreWidth));
    }

    private static List<List<Scored>> join(@Nullable Tensor labels, @Nullable Tensor scores, int examples, int width) {
        ByteBuffer texts = labels == null ? null : labels.buffer();
        ByteBuffer numbers = scores == null ? null : scores.buffer();
        int at = 0;
        List<List<Scored>> all = new ArrayList<>(examples);
        for (int i = 0; i < examples; i++) {
            List<Scored> of = new ArrayList<>(width);
            for (int j = 0; j < width; j++) {
                byte[] label = NO_LABEL;
                if (texts != null) {
                    label = new byte[texts.getInt(at)];
                    texts.get(at + 4, label);
                    at += 4 + label.length;
                }
                float score = numbers == null || scores == null ? 0 : number(scores.dataType(), numbers, i * width + j);
                of.add(new Scored(label, score));
            }
            all.add(of);
        }
        return all;
    }

    /**
     * One number for each example.
     *
     * @param exact whether the output is TensorFlow's: of its type, and under its key
     * @throws ServingException INVALID_ARGUMENT when no output has one number for each example
     */
    public static float[] values(List<Tensor> outputs, long examples, boolean exact) {
        Tensor found = named(outputs, "outputs");
        if (found == null && !exact) {
            found = ofType(outputs, false);
        }
        if (found == null) {
            throw ServingException.invalidArgument(
                    "Expected regression signature outputs to contain \"outputs\"",
                    "the model gives " + names(outputs) + "; ask for them with predict");
        }
        int rank = found.shape().rank();
        if (rank != 1 && !(rank == 2 && found.shape().dim(1) == 1)) {
            throw ServingException.invalidArgument(
                    "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got "
                            + found.shape(),
                    "output '" + found.name() + "'");
        }
        if (found.shape().dim(0) != examples) {
            throw ServingException.invalidArgument(
                    "Input batch size did not match output batch size: " + examples + " vs. "
                            + found.shape().dim(0),
                    "output '" + found.name() + "'");
        }
        if (!(exact ? found.dataType() == DataType.FP32 : isNumber(found.dataType()))) {
            throw ServingException.invalidArgument(
                    "Expected output Tensor of DT_FLOAT.  Got: " + typeOf(found), "output '" + found.name() + "'");
        }
        ByteBuffer numbers = found.buffer();
        float[] values = new float[(int) examples];
        for (int i = 0; i < values.length; i++) {
            values[i] = number(found.dataType(), numbers, i);
        }
        return values;
    }

    private static long width(@Nullable Tensor t, boolean derived, long examples, String key) {
        if (t == null) {
            return 0;
        }
        int rank = t.shape().rank();
        if (rank != 2 && !(derived && rank == 1)) {
            throw ServingException.invalidArgument(
                    "Expected Tensor shape: [batch_size num_classes] but got " + t.shape(),
                    "output '" + t.name() + "'");
        }
        if (t.shape().dim(0) != examples) {
            throw ServingException.invalidArgument(
                    "Expected " + key + " output batch size of " + examples + ". Got: "
                            + t.shape().dim(0),
                    "output '" + t.name() + "'");
        }
        return rank == 1 ? 1 : t.shape().dim(1);
    }

    private static @Nullable Tensor named(List<Tensor> outputs, String name) {
        for (Tensor t : outputs) {
            if (t.name().equals(name)) {
                return t;
            }
        }
        return null;
    }

    /** The first output of strings, or the first of numbers, where floats come before integers. */
    private static @Nullable Tensor ofType(List<Tensor> outputs, boolean texts) {
        Tensor integers = null;
        for (Tensor t : outputs) {
            DataType type = t.dataType();
            if (texts ? type == DataType.BYTES : type == DataType.FP32 || type == DataType.FP64) {
                return t;
            }
            if (!texts && integers == null && isNumber(type)) {
                integers = t;
            }
        }
        return integers;
    }

    private static boolean isNumber(DataType type) {
        return switch (type) {
            case FP32, FP64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32 -> true;
            case BOOL, UINT64, FP16, BF16, BYTES -> false;
        };
    }

    private static float number(DataType type, ByteBuffer b, int i) {
        return switch (type) {
            case FP32 -> b.getFloat(i * 4);
            case FP64 -> (float) b.getDouble(i * 8);
            case INT8 -> b.get(i);
            case UINT8 -> b.get(i) & 0xFF;
            case INT16 -> b.getShort(i * 2);
            case UINT16 -> b.getShort(i * 2) & 0xFFFF;
            case INT32 -> b.getInt(i * 4);
            case UINT32 -> b.getInt(i * 4) & 0xFFFF_FFFFL;
            case INT64 -> b.getLong(i * 8);
            case BOOL, UINT64, FP16, BF16, BYTES -> 0;
        };
    }

    private static String typeOf(Tensor t) {
        return TfDataType.of(t.dataType()).protoName();
    }

    private static List<String> names(List<Tensor> outputs) {
        return outputs.stream().map(Tensor::name).toList();
    }
}
