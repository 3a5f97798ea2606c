// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protocols.v2.memory.RawTensors;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;

/**
 * Decodes the {@code InferTensorContents} of one input into a tensor, in two passes over their ranges in the message:
 * the first counts the elements, so that the tensor is allocated once and a wrong shape is found before; the second
 * copies. Confined to one thread; used for one input.
 */
public final class TypedContentsReader {
    private static final DataType[] TYPE_OF_FIELD = {
        DataType.BYTES,
        DataType.BOOL,
        DataType.INT32,
        DataType.INT64,
        DataType.UINT32,
        DataType.UINT64,
        DataType.FP32,
        DataType.FP64,
        DataType.BYTES
    };

    private final ProtobufReader wire;
    private final MemoryRegion message;
    private final String input;
    private final DataType type;
    private final String model;
    private final int field;
    private long count;
    private long textBytes;
    private int at;

    TypedContentsReader(ProtobufReader wire, MemoryRegion message, String input, DataType type, String model) {
        this.wire = wire;
        this.message = message;
        this.input = input;
        this.type = type;
        this.model = model;
        this.field = field(type);
    }

    /** The number of the field that holds elements of a type; 0 for FP16 and BF16, which have no typed form. */
    public static int field(DataType type) {
        return switch (type) {
            case BOOL -> 1;
            case INT8, INT16, INT32 -> 2;
            case INT64 -> 3;
            case UINT8, UINT16, UINT32 -> 4;
            case UINT64 -> 5;
            case FP32 -> 6;
            case FP64 -> 7;
            case BYTES -> 8;
            case FP16, BF16 -> 0;
        };
    }

    private static int singleWireType(int field) {
        return switch (field) {
            case 6 -> ProtobufReader.FIXED32;
            case 7 -> ProtobufReader.FIXED64;
            default -> ProtobufReader.VARINT;
        };
    }

    boolean isEmpty() {
        return count == 0;
    }

    /** First pass over one range: counts the elements and rejects those of another type. */
    void count() {
        while (wire.hasMore()) {
            int tag = wire.readTag();
            int number = tag >>> 3;
            if (number > 8
                    || (tag & 7) != ProtobufReader.BYTES && (number == 8 || (tag & 7) != singleWireType(number))) {
                wire.skipField(tag);
                continue;
            }
            long elements = 1;
            if ((tag & 7) == ProtobufReader.BYTES) {
                int length = wire.readLength();
                if (number == 8) {
                    textBytes += 4L + length;
                } else {
                    elements = packedCount(number, wire.position(), length);
                }
                wire.skip(length);
            } else {
                wire.skipField(tag);
            }
            if (elements > 0 && number != field) {
                throw ServingException.invalidArgument(
                        "unexpected explicit tensor data for input tensor '" + input + "' for model '" + model
                                + "' of type '" + TYPE_OF_FIELD[number] + "', expected datatype '" + type + "'",
                        field == 0 ? type + " is supported in raw_input_contents only" : null);
            }
            count += elements;
        }
    }

    private long packedCount(int number, int from, int length) {
        if (number == 6 || number == 7) {
            int size = number == 6 ? 4 : 8;
            if (length % size != 0) {
                throw ServingException.invalidArgument("malformed protobuf message: " + length
                        + " bytes of packed numbers of " + size + " bytes each, for input '" + input + "'");
            }
            return length / size;
        }
        // each varint ends with the one byte whose high bit is clear
        ByteBuffer buffer = wire.buffer();
        int n = 0;
        for (int i = from; i < from + length; i++) {
            n += buffer.get(i) >= 0 ? 1 : 0;
        }
        if (length > 0 && buffer.get(from + length - 1) < 0) {
            throw ServingException.invalidArgument(
                    "malformed protobuf message: packed numbers end inside a number, for input '" + input + "'");
        }
        return n;
    }

    /** Allocates the tensor, once the number of elements agrees with the shape. */
    Tensor allocate(Shape shape) {
        long expected = shape.elementCount();
        if (type == DataType.BYTES) {
            if (expected != count) {
                throw RawTensors.countMismatch(input, model, expected, count);
            }
            if (textBytes > Integer.MAX_VALUE - 64) {
                throw ServingException.invalidArgument(
                        "input '" + input + "' takes " + textBytes + " bytes (expected: < 2 GiB)");
            }
            return Tensor.over(input, type, shape, MemoryRegion.allocate((int) textBytes), 0, (int) textBytes);
        }
        if (expected != count) {
            throw RawTensors.sizeMismatch(input, model, shape.byteSize(type), count * type.size());
        }
        return Tensor.allocate(input, type, shape);
    }

    /** Second pass over one range: copies the elements. */
    void copy(Tensor tensor) {
        ByteBuffer target = tensor.buffer();
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag >>> 3 != field || field == 0) {
                wire.skipField(tag);
            } else if ((tag & 7) == ProtobufReader.BYTES) {
                copyBytes(tensor.region(), target);
            } else if (field != 8 && (tag & 7) == singleWireType(field)) {
                copyOne(target);
            } else {
                wire.skipField(tag);
            }
        }
    }

    private void copyBytes(MemoryRegion region, ByteBuffer target) {
        int length = wire.readLength();
        int from = wire.position();
        switch (field) {
            case 8 -> {
                region.setInt(at, length);
                region.setBytes(at + 4, message, from, length);
                at += 4 + length;
            }
            case 6, 7 -> {
                region.setBytes(at, message, from, length);
                at += length;
            }
            default -> {
                int outer = wire.end();
                wire.range(from, from + length);
                while (wire.hasMore()) {
                    copyOne(target);
                }
                wire.range(from, outer);
            }
        }
        wire.skip(length);
    }

    private void copyOne(ByteBuffer target) {
        switch (type) {
            case BOOL -> target.put(at, (byte) (wire.readVarint() != 0 ? 1 : 0));
            case INT8 -> target.put(at, (byte) inRange((int) wire.readVarint(), Byte.MIN_VALUE, Byte.MAX_VALUE));
            case INT16 ->
                target.putShort(at, (short) inRange((int) wire.readVarint(), Short.MIN_VALUE, Short.MAX_VALUE));
            case INT32, UINT32 -> target.putInt(at, (int) wire.readVarint());
            case UINT8 -> target.put(at, (byte) inRange(wire.readVarint() & 0xFFFF_FFFFL, 0, 0xFF));
            case UINT16 -> target.putShort(at, (short) inRange(wire.readVarint() & 0xFFFF_FFFFL, 0, 0xFFFF));
            case INT64, UINT64 -> target.putLong(at, wire.readVarint());
            case FP32 -> target.putInt(at, wire.readFixed32());
            case FP64 -> target.putLong(at, wire.readFixed64());
            case FP16, BF16, BYTES -> throw new IllegalStateException("no single elements of " + type);
        }
        at += type.size();
    }

    private long inRange(long value, long min, long max) {
        if (value < min || value > max) {
            throw ServingException.invalidArgument("value " + value + " of input '" + input + "' for model '" + model
                    + "' does not fit " + type + " (expected: " + min + " to " + max + ")");
        }
        return value;
    }
}
