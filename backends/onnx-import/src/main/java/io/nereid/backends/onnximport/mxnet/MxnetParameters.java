// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.mxnet;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.base.ServingException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads MXNet's {@code .params} file: a list of arrays, then a list of their names. Confined to one load. */
final class MxnetParameters {
    private static final long LIST = 0x112;
    private static final int VERSION_1 = 0xF993FAC8;
    private static final int VERSION_2 = 0xF993FAC9;
    private static final int VERSION_3 = 0xF993FACA;

    private final ByteBuffer in;

    private MxnetParameters(byte[] bytes) {
        in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Reads the arrays, by name without the prefix {@code arg:} or {@code aux:}. */
    static Map<String, ConstantTensor> parse(byte[] bytes) {
        try {
            return new MxnetParameters(bytes).read();
        } catch (BufferUnderflowException e) {
            throw ServingException.invalidArgument("it ends too early, after " + bytes.length + " bytes");
        }
    }

    private Map<String, ConstantTensor> read() {
        if (in.getLong() != LIST) {
            throw ServingException.invalidArgument("it does not begin like MXNet's weights");
        }
        in.getLong();
        long count = count();
        List<ConstantTensor> arrays = new ArrayList<>();
        for (long i = 0; i < count; i++) {
            arrays.add(array());
        }
        if (count() != count) {
            throw ServingException.invalidArgument("its arrays and names differ in number");
        }
        Map<String, ConstantTensor> byName = new LinkedHashMap<>();
        for (ConstantTensor array : arrays) {
            byte[] name = new byte[(int) count()];
            in.get(name);
            String text = new String(name, StandardCharsets.UTF_8);
            byName.put(text.startsWith("arg:") || text.startsWith("aux:") ? text.substring(4) : text, array);
        }
        return byName;
    }

    /** Reads a count of items; each takes at least one byte, so a larger count than the remaining bytes is invalid. */
    private long count() {
        long count = in.getLong();
        if (count < 0 || count > in.remaining()) {
            throw ServingException.invalidArgument(
                    "it declares " + count + " items, but has " + in.remaining() + " bytes");
        }
        return count;
    }

    private ConstantTensor array() {
        int version = in.getInt();
        if (version == VERSION_2 || version == VERSION_3) {
            int storage = in.getInt();
            if (storage != 0) {
                throw ServingException.invalidArgument("it has a sparse array, storage type " + storage);
            }
        }
        boolean old = version != VERSION_1 && version != VERSION_2 && version != VERSION_3;
        int rank = old ? version : in.getInt();
        if (rank < 0 || rank > 32) {
            throw ServingException.invalidArgument("it has an array of " + rank + " dimensions");
        }
        long[] dims = new long[rank];
        long elements = 1;
        for (int i = 0; i < rank; i++) {
            dims[i] = old ? in.getInt() : in.getLong();
            if (dims[i] < 0 || dims[i] > in.remaining() || (elements *= dims[i]) > in.remaining()) {
                throw ServingException.invalidArgument("it declares more elements than it has bytes");
            }
        }
        in.getLong();
        int number = in.getInt();
        ElementType type = switch (number) {
            case 0 -> ElementType.FLOAT;
            case 1 -> ElementType.DOUBLE;
            case 2 -> ElementType.FLOAT16;
            case 3 -> ElementType.UINT8;
            case 4 -> ElementType.INT32;
            case 5 -> ElementType.INT8;
            case 6 -> ElementType.INT64;
            default -> throw ServingException.invalidArgument("it has an array of type " + number);
        };
        if (elements * type.bytes() > in.remaining()) {
            throw ServingException.invalidArgument("it ends inside an array");
        }
        byte[] raw = new byte[(int) (elements * type.bytes())];
        in.get(raw);
        return new ConstantTensor(type, dims, raw, List.of());
    }
}
