// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import static io.nereid.backends.onnximport.caffe2.OperatorContext.attributes;

import io.nereid.backends.onnximport.caffe2.NetDef.Argument;
import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/** Conversions of operators that produce constants; weights are such operators in Caffe2's init nets. Stateless. */
public final class ConstantOperators {
    /**
     * The limit on elements of a constant: a repeated value takes no space in the file, so a damaged file may ask for
     * any.
     */
    private static final long MOST_ELEMENTS = 1L << 28;

    /** Constants of up to this many elements are stored in full, so that other conversions can read their values. */
    private static final int WRITTEN_OUT = 4096;

    /** The type of a pseudo-operator, not of Caffe2, for weights of other formats: elements as they are in memory. */
    public static final String RAW = "raw elements";

    private ConstantOperators() {}

    static List<Value> raw(OperatorContext c) {
        ElementType type = ElementType.ofName(c.text("type", ""));
        Argument values = c.operator().arguments().get("values");
        if (type == null || values == null || values.strings().isEmpty()) {
            throw c.rejected("has no values", "the file is damaged: export it again");
        }
        ConstantTensor constant =
                new ConstantTensor(type, dims(c), values.strings().get(0), List.of());
        if (constant.count() * type.bytes() != constant.raw().length) {
            throw c.rejected("has too few values", "the file is damaged: export it again");
        }
        return List.of(c.graph().constant(c.operator().outputs().get(0), constant));
    }

    /** A constant whose values are in the file. */
    static Caffe2Operators.Conversion given(ElementType type) {
        return c -> {
            Argument values = c.operator().arguments().get("values");
            long[] dims = dims(c);
            byte[] raw = new byte[0];
            List<byte[]> strings = values == null ? List.of() : values.strings();
            long count = 0;
            if (type == ElementType.STRING) {
                count = strings.size();
            } else if (values != null) {
                raw = raw(values, type);
                count = raw.length / type.bytes();
            }
            ConstantTensor constant = new ConstantTensor(type, dims, raw, strings);
            if (constant.count() != count) {
                throw c.rejected(
                        "has " + count + " values for the shape " + java.util.Arrays.toString(dims),
                        "the file is damaged: export it again");
            }
            return List.of(c.graph().constant(c.operator().outputs().get(0), constant));
        };
    }

    private static byte[] raw(Argument values, ElementType type) {
        boolean floats = type == ElementType.FLOAT || type == ElementType.DOUBLE;
        int n = floats ? values.floats().length : values.ints().length;
        ByteBuffer out =
                ByteBuffer.allocate(Math.multiplyExact(n, type.bytes())).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < n; i++) {
            if (floats) {
                put(out, type, values.floats()[i], 0);
            } else {
                put(out, type, 0, values.ints()[i]);
            }
        }
        return out.array();
    }

    private static void put(ByteBuffer out, ElementType type, double number, long integer) {
        switch (type) {
            case FLOAT -> out.putFloat((float) number);
            case DOUBLE -> out.putDouble(number);
            case INT64 -> out.putLong(integer);
            case INT32 -> out.putInt((int) integer);
            case INT16, UINT16 -> out.putShort((short) integer);
            case BOOL -> out.put((byte) (integer != 0 ? 1 : 0));
            default -> out.put((byte) integer);
        }
    }

    /** A UINT8 constant whose values are in the file as one string. */
    static List<Value> givenBytes(OperatorContext c) {
        Argument values = c.operator().arguments().get("values");
        byte[] raw = values == null || values.strings().isEmpty()
                ? new byte[0]
                : values.strings().get(0);
        ConstantTensor constant = new ConstantTensor(ElementType.UINT8, dims(c), raw, List.of());
        if (constant.count() != raw.length) {
            throw c.rejected(
                    "has " + raw.length + " values for the shape " + java.util.Arrays.toString(constant.dims()),
                    "the file is damaged: export it again");
        }
        return List.of(c.graph().constant(c.operator().outputs().get(0), constant));
    }

    private static long[] dims(OperatorContext c) {
        if (!c.in().isEmpty() || c.flag("input_as_shape") || c.integers("extra_shape").length > 0) {
            throw c.rejected("computes its shape", "export the model to ONNX");
        }
        long[] dims = c.integers("shape");
        long count = 1;
        for (long d : dims) {
            if (d < 0 || d > MOST_ELEMENTS || (count *= d) > MOST_ELEMENTS) {
                throw c.rejected(
                        "has the shape " + java.util.Arrays.toString(dims) + ", expected at most " + MOST_ELEMENTS
                                + " elements",
                        "the file is damaged: export it again");
            }
        }
        return dims;
    }

    /**
     * A constant of one repeated value; with an input, of that input's shape, or of the shape that the input contains.
     */
    static List<Value> constant(OperatorContext c) {
        Argument value = c.operator().arguments().get("value");
        ElementType type = c.has("dtype")
                ? ElementType.ofCaffe2(c.integer("dtype", 1))
                : value != null && value.f() == null && value.i() != null ? ElementType.INT64 : ElementType.FLOAT;
        if (type == null || type.bytes() == 0 || type == ElementType.FLOAT16) {
            throw c.rejected("has type " + c.integer("dtype", 0), "export the model to ONNX");
        }
        ByteBuffer one = ByteBuffer.allocate(type.bytes()).order(ByteOrder.LITTLE_ENDIAN);
        put(one, type, c.number("value", 0), c.integer("value", 0));
        if (!c.in().isEmpty()) {
            boolean asShape = c.flag("input_as_shape");
            if (c.integers("extra_shape").length > 0) {
                throw c.rejected("has extra_shape", "export the model to ONNX");
            }
            Value shape = asShape
                    ? c.graph().node("Cast", List.of(c.in(0)), attributes("to", 7L), ElementType.INT64, 1)
                    : c.graph().node("Shape", List.of(c.in(0)), attributes(), ElementType.INT64, 1);
            ConstantTensor element = new ConstantTensor(type, new long[] {1}, one.array(), List.of());
            return List.of(c.graph()
                    .node(
                            "ConstantOfShape",
                            List.of(shape),
                            attributes("value", element),
                            type,
                            asShape ? -1 : c.in(0).rank()));
        }
        long[] dims = dims(c);
        int count = Math.toIntExact(new ConstantTensor(type, dims, one.array(), List.of()).count());
        if (count > WRITTEN_OUT) {
            ConstantTensor element = new ConstantTensor(type, new long[] {1}, one.array(), List.of());
            List<Value> shape = List.of(c.graph().longs(dims));
            return List.of(c.graph().node("ConstantOfShape", shape, attributes("value", element), type, dims.length));
        }
        ByteBuffer raw = ByteBuffer.allocate(count * type.bytes());
        for (int i = 0; i < count; i++) {
            raw.put(one.array());
        }
        return List.of(c.graph()
                .constant(c.operator().outputs().get(0), new ConstantTensor(type, dims, raw.array(), List.of())));
    }

    static List<Value> random(OperatorContext c) {
        throw c.rejected(
                "produces random numbers, so the model has not been trained", "save the init net after training");
    }
}
