// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A PaddlePaddle {@code ProgramDesc}, from a {@code *.pdmodel} or {@code __model__} file. Immutable.
 *
 * @param operators the operators of the first block, in execution order
 * @param variables the variables of the first block, by name
 * @param blocks the number of blocks; a program with loops or branches has more than one
 */
record PaddleProgram(List<Operator> operators, Map<String, Variable> variables, int blocks) {
    /**
     * An {@code OpDesc}.
     *
     * @param inputs names of variables by input parameter
     * @param outputs names of variables by output parameter
     * @param attributes Long, Float, Boolean, String, long[], float[] or a list of strings, by name
     */
    record Operator(
            String type,
            Map<String, List<String>> inputs,
            Map<String, List<String>> outputs,
            Map<String, Object> attributes) {}

    /**
     * A {@code VarDesc}.
     *
     * @param persistable whether it is a weight
     * @param type the type of its elements; null when it is not a tensor or ONNX does not have the type
     * @param dims its shape, -1 for any size
     */
    record Variable(
            String name, boolean persistable, @Nullable ElementType type, long[] dims) {}

    /** @throws ServingException INVALID_ARGUMENT when the bytes are not a ProgramDesc */
    static PaddleProgram parse(byte[] bytes) {
        ProtobufReader in = new ProtobufReader();
        in.reset(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
        List<Operator> operators = new ArrayList<>();
        Map<String, Variable> variables = new LinkedHashMap<>();
        int blocks = 0;
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (1 << 3 | ProtobufReader.BYTES)) {
                if (blocks++ == 0) {
                    block(in, operators, variables);
                    continue;
                }
            }
            in.skipField(tag);
        }
        return new PaddleProgram(List.copyOf(operators), variables, blocks);
    }

    private static void block(ProtobufReader in, List<Operator> operators, Map<String, Variable> variables) {
        int outer = in.enter();
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (3 << 3 | ProtobufReader.BYTES)) {
                Variable v = variable(in);
                variables.put(v.name(), v);
            } else if (tag == (4 << 3 | ProtobufReader.BYTES)) {
                operators.add(operator(in));
            } else {
                in.skipField(tag);
            }
        }
        in.leave(outer);
    }

    private static Variable variable(ProtobufReader in) {
        int outer = in.enter();
        String name = "";
        boolean persistable = false;
        Variable tensor = new Variable("", false, null, new long[0]);
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> name = text(in);
                case 2 << 3 | ProtobufReader.BYTES -> tensor = nested(in, 3);
                case 3 << 3 | ProtobufReader.VARINT -> persistable = in.readVarint() != 0;
                default -> in.skipField(tag);
            }
        }
        in.leave(outer);
        return new Variable(name, persistable, tensor.type(), tensor.dims());
    }

    /** Reads the TensorDesc in a VarType: lod_tensor is its field 3, whose field 1 is the description. */
    private static Variable nested(ProtobufReader in, int field) {
        int outer = in.enter();
        Variable found = new Variable("", false, null, new long[0]);
        while (in.hasMore()) {
            int tag = in.readTag();
            if (tag == (field << 3 | ProtobufReader.BYTES)) {
                found = field == 3 ? nested(in, 1) : description(in);
            } else {
                in.skipField(tag);
            }
        }
        in.leave(outer);
        return found;
    }

    /** Reads a length-prefixed TensorDesc. */
    static Variable description(ProtobufReader in) {
        int outer = in.enter();
        Variable found = shape(in);
        in.leave(outer);
        return found;
    }

    /** Reads a TensorDesc up to the end of the reader's range: data_type = 1, dims = 2 (packed or not). */
    static Variable shape(ProtobufReader in) {
        ElementType type = null;
        List<Long> dims = new ArrayList<>();
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.VARINT -> type = ElementType.ofPaddle(in.readVarint());
                case 2 << 3 | ProtobufReader.VARINT -> dims.add(in.readVarint());
                case 2 << 3 | ProtobufReader.BYTES -> packed(in, dims);
                default -> in.skipField(tag);
            }
        }
        return new Variable("", false, type, longs(dims));
    }

    private static Operator operator(ProtobufReader in) {
        int outer = in.enter();
        String type = "";
        Map<String, List<String>> inputs = new HashMap<>();
        Map<String, List<String>> outputs = new HashMap<>();
        Map<String, Object> attributes = new HashMap<>();
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> names(in, inputs);
                case 2 << 3 | ProtobufReader.BYTES -> names(in, outputs);
                case 3 << 3 | ProtobufReader.BYTES -> type = text(in);
                case 4 << 3 | ProtobufReader.BYTES -> attribute(in, attributes);
                default -> in.skipField(tag);
            }
        }
        in.leave(outer);
        return new Operator(type, inputs, outputs, attributes);
    }

    private static void names(ProtobufReader in, Map<String, List<String>> into) {
        int outer = in.enter();
        String parameter = "";
        List<String> names = new ArrayList<>();
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> parameter = text(in);
                case 2 << 3 | ProtobufReader.BYTES -> names.add(text(in));
                default -> in.skipField(tag);
            }
        }
        in.leave(outer);
        into.put(parameter, List.copyOf(names));
    }

    private static void attribute(ProtobufReader in, Map<String, Object> into) {
        int outer = in.enter();
        String name = "";
        long kind = -1;
        Object one = null;
        List<Long> wholes = new ArrayList<>();
        List<Float> reals = new ArrayList<>();
        List<String> texts = new ArrayList<>();
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.BYTES -> name = text(in);
                case 2 << 3 | ProtobufReader.VARINT -> kind = in.readVarint();
                case 3 << 3 | ProtobufReader.VARINT, 13 << 3 | ProtobufReader.VARINT, 12 << 3 | ProtobufReader.VARINT ->
                    one = in.readVarint();
                case 4 << 3 | ProtobufReader.FIXED32 -> one = Float.intBitsToFloat(in.readFixed32());
                case 19 << 3 | ProtobufReader.FIXED64 -> one = (float) Double.longBitsToDouble(in.readFixed64());
                case 5 << 3 | ProtobufReader.BYTES -> one = text(in);
                case 10 << 3 | ProtobufReader.VARINT -> one = in.readVarint() != 0;
                case 6 << 3 | ProtobufReader.VARINT, 15 << 3 | ProtobufReader.VARINT, 11 << 3 | ProtobufReader.VARINT ->
                    wholes.add(in.readVarint());
                case 6 << 3 | ProtobufReader.BYTES, 15 << 3 | ProtobufReader.BYTES, 11 << 3 | ProtobufReader.BYTES ->
                    packed(in, wholes);
                case 7 << 3 | ProtobufReader.FIXED32 -> reals.add(Float.intBitsToFloat(in.readFixed32()));
                case 8 << 3 | ProtobufReader.BYTES -> texts.add(text(in));
                case 20 << 3 | ProtobufReader.BYTES -> one = scalar(in);
                case 21 << 3 | ProtobufReader.BYTES -> reals.add(scalar(in));
                case 16 << 3 | ProtobufReader.FIXED64 -> reals.add((float) Double.longBitsToDouble(in.readFixed64()));
                default -> in.skipField(tag);
            }
        }
        in.leave(outer);
        if (one != null) {
            into.put(name, one);
        } else if (!reals.isEmpty() || kind == 4 || kind == 12) {
            float[] values = new float[reals.size()];
            for (int i = 0; i < values.length; i++) {
                values[i] = reals.get(i);
            }
            into.put(name, values);
        } else if (!texts.isEmpty() || kind == 5) {
            into.put(name, List.copyOf(texts));
        } else {
            into.put(name, longs(wholes));
        }
    }

    /** Reads a Scalar of any numeric type as a float. */
    private static float scalar(ProtobufReader in) {
        int outer = in.enter();
        float value = 0;
        while (in.hasMore()) {
            int tag = in.readTag();
            switch (tag) {
                case 2 << 3 | ProtobufReader.VARINT, 3 << 3 | ProtobufReader.VARINT -> value = in.readVarint();
                case 4 << 3 | ProtobufReader.FIXED64 -> value = (float) Double.longBitsToDouble(in.readFixed64());
                default -> in.skipField(tag);
            }
        }
        in.leave(outer);
        return value;
    }

    private static void packed(ProtobufReader in, List<Long> into) {
        int outer = in.enter();
        while (in.hasMore()) {
            into.add(in.readVarint());
        }
        in.leave(outer);
    }

    private static long[] longs(List<Long> values) {
        return values.stream().mapToLong(Long::longValue).toArray();
    }

    private static String text(ProtobufReader in) {
        int length = in.readLength();
        byte[] bytes = new byte[length];
        in.buffer().get(in.position(), bytes);
        in.skip(length);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
