// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A Caffe2 {@code NetDef}: operators that read and write blobs by name, in execution order. Immutable.
 *
 * @param name its name, or empty
 * @param operators the operators, in execution order
 * @param inputs the blobs that it reads and does not write, including weights
 * @param outputs the blobs that are its outputs
 */
public record NetDef(String name, List<Operator> operators, List<String> inputs, List<String> outputs) {
    /**
     * An {@code OperatorDef}.
     *
     * @param type the operator's type, such as {@code Conv}
     * @param inputs the blobs that it reads
     * @param outputs the blobs that it writes; in-place operators write a blob that they read
     * @param arguments the arguments by name
     */
    public record Operator(String type, List<String> inputs, List<String> outputs, Map<String, Argument> arguments) {}

    /**
     * An {@code Argument}. Fields that are not set are null or empty.
     *
     * @param f a float
     * @param i an integer
     * @param s a string
     * @param floats a list of floats
     * @param ints a list of integers
     * @param strings a list of strings
     */
    public record Argument(
            @Nullable Float f,
            @Nullable Long i,
            @Nullable String s,
            float[] floats,
            long[] ints,
            List<byte[]> strings) {}

    /** @throws ServingException INVALID_ARGUMENT when the bytes are not a NetDef */
    static NetDef parse(byte[] bytes) {
        ProtobufReader in = new ProtobufReader();
        in.reset(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
        String name = "";
        List<Operator> operators = new ArrayList<>();
        List<String> inputs = new ArrayList<>();
        List<String> outputs = new ArrayList<>();
        while (in.hasMore()) {
            int tag = in.readTag();
            if ((tag & 7) != ProtobufReader.BYTES) {
                in.skipField(tag);
                continue;
            }
            switch (tag >>> 3) {
                case 1 -> name = text(in);
                case 2 -> operators.add(operator(in));
                case 7 -> inputs.add(text(in));
                case 8 -> outputs.add(text(in));
                default -> in.skipField(tag);
            }
        }
        return new NetDef(name, List.copyOf(operators), List.copyOf(inputs), List.copyOf(outputs));
    }

    private static Operator operator(ProtobufReader in) {
        int outer = in.enter();
        String type = "";
        List<String> inputs = new ArrayList<>();
        List<String> outputs = new ArrayList<>();
        Map<String, Argument> arguments = new LinkedHashMap<>();
        while (in.hasMore()) {
            int tag = in.readTag();
            if ((tag & 7) != ProtobufReader.BYTES) {
                in.skipField(tag);
                continue;
            }
            switch (tag >>> 3) {
                case 1 -> inputs.add(text(in));
                case 2 -> outputs.add(text(in));
                case 4 -> type = text(in);
                case 5 -> argument(in, arguments);
                default -> in.skipField(tag);
            }
        }
        in.leave(outer);
        return new Operator(type, List.copyOf(inputs), List.copyOf(outputs), arguments);
    }

    private static void argument(ProtobufReader in, Map<String, Argument> into) {
        int outer = in.enter();
        String name = "";
        Float f = null;
        Long i = null;
        String s = null;
        Floats floats = new Floats();
        Longs ints = new Longs();
        List<byte[]> strings = new ArrayList<>();
        while (in.hasMore()) {
            int tag = in.readTag();
            int type = tag & 7;
            int field = tag >>> 3;
            if (field == 1 && type == ProtobufReader.BYTES) {
                name = text(in);
            } else if (field == 2 && type == ProtobufReader.FIXED32) {
                f = Float.intBitsToFloat(in.readFixed32());
            } else if (field == 3 && type == ProtobufReader.VARINT) {
                i = in.readVarint();
            } else if (field == 4 && type == ProtobufReader.BYTES) {
                s = text(in);
            } else if (field == 5 && (type == ProtobufReader.FIXED32 || type == ProtobufReader.BYTES)) {
                floats.read(in, type);
            } else if (field == 6 && (type == ProtobufReader.VARINT || type == ProtobufReader.BYTES)) {
                ints.read(in, type);
            } else if (field == 7 && type == ProtobufReader.BYTES) {
                strings.add(bytes(in));
            } else {
                in.skipField(tag);
            }
        }
        in.leave(outer);
        into.put(name, new Argument(f, i, s, floats.toArray(), ints.toArray(), List.copyOf(strings)));
    }

    private static byte[] bytes(ProtobufReader in) {
        int length = in.readLength();
        byte[] bytes = new byte[length];
        in.buffer().get(in.position(), bytes);
        in.skip(length);
        return bytes;
    }

    private static String text(ProtobufReader in) {
        return new String(bytes(in), StandardCharsets.UTF_8);
    }

    /**
     * A growing array. It grows with the values that are read, not to a size that the file declares, which may be
     * wrong. Confined to one thread.
     */
    private static final class Floats {
        private float[] values = new float[0];
        private int size;

        void read(ProtobufReader in, int type) {
            if (type == ProtobufReader.FIXED32) {
                add(in.readFixed32());
                return;
            }
            int outer = in.enter();
            while (in.hasMore()) {
                add(in.readFixed32());
            }
            in.leave(outer);
        }

        private void add(int bits) {
            if (size == values.length) {
                values = Arrays.copyOf(values, Math.max(16, size + (size >> 1)));
            }
            values[size++] = Float.intBitsToFloat(bits);
        }

        float[] toArray() {
            return Arrays.copyOf(values, size);
        }
    }

    /** The same for integers. Confined to one thread. */
    private static final class Longs {
        private long[] values = new long[0];
        private int size;

        void read(ProtobufReader in, int type) {
            if (type == ProtobufReader.VARINT) {
                add(in.readVarint());
                return;
            }
            int outer = in.enter();
            while (in.hasMore()) {
                add(in.readVarint());
            }
            in.leave(outer);
        }

        private void add(long value) {
            if (size == values.length) {
                values = Arrays.copyOf(values, Math.max(8, size + (size >> 1)));
            }
            values[size++] = value;
        }

        long[] toArray() {
            return Arrays.copyOf(values, size);
        }
    }
}
