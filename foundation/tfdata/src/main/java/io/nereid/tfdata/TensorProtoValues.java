// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;

/**
 * Converts values between the repeated fields of a TensorProto and the bytes of a tensor. A span of the message is
 * either a sequence of packed lists of one field, or a sequence of its single values, including the tags between them.
 * Confined to one thread.
 */
final class TensorProtoValues {
    private String name = "";
    private DataType type = DataType.FP32;
    private MemoryRegion source = MemoryRegion.empty();
    private MemoryRegion target = MemoryRegion.empty();
    private ByteBuffer out = ByteBuffer.allocate(0);
    private int at;
    private int lastTextLength;

    /** Counts the values of the span in the reader's range, whose first tag has been read. */
    long count(String tensor, ProtobufReader wire, int tag) {
        name = tensor;
        int field = tag >>> 3;
        long count = 0;
        boolean first = true;
        while (first || wire.hasMore()) {
            if (!first) {
                wire.readTag();
            }
            first = false;
            if ((tag & 7) != ProtobufReader.BYTES || field == 8) {
                wire.skipField(tag);
                count++;
            } else {
                int length = wire.readLength();
                count += packed(wire, field, length);
                wire.skip(length);
            }
        }
        return count;
    }

    private long packed(ProtobufReader wire, int field, int length) {
        if (field == 5 || field == 6) {
            int size = field == 5 ? 4 : 8;
            if (length % size != 0) {
                throw ServingException.invalidArgument("malformed protobuf message: " + length
                        + " bytes of packed numbers of " + size + " bytes each, for tensor '" + name + "'");
            }
            return length / size;
        }
        ByteBuffer buffer = wire.buffer();
        int from = wire.position();
        int n = 0;
        for (int i = from; i < from + length; i++) {
            n += buffer.get(i) >= 0 ? 1 : 0;
        }
        if (length > 0 && buffer.get(from + length - 1) < 0) {
            throw ServingException.invalidArgument(
                    "malformed protobuf message: packed numbers end inside a number, for tensor '" + name + "'");
        }
        return n;
    }

    /** Returns {@code before} plus the bytes of the strings of a span. */
    long textBytes(String tensor, ProtobufReader wire, int from, int to, long before) {
        name = tensor;
        long bytes = before;
        wire.range(from, to);
        boolean first = true;
        while (first || wire.hasMore()) {
            if (!first) {
                wire.readTag();
            }
            first = false;
            lastTextLength = wire.readLength();
            bytes += lastTextLength;
            wire.skip(lastTextLength);
        }
        return bytes;
    }

    int lastTextLength() {
        return lastTextLength;
    }

    /** Sets the tensor to which {@link #copy} writes, from its beginning. */
    void into(Tensor tensor, MemoryRegion message) {
        name = tensor.name();
        type = tensor.dataType();
        source = message;
        target = tensor.region();
        out = tensor.buffer();
        at = 0;
    }

    /** Copies the values of a span. */
    void copy(ProtobufReader wire, int tag) {
        boolean first = true;
        while (first || wire.hasMore()) {
            if (!first) {
                wire.readTag();
            }
            first = false;
            if ((tag & 7) != ProtobufReader.BYTES) {
                copyOne(wire);
                continue;
            }
            int length = wire.readLength();
            int from = wire.position();
            if (type == DataType.BYTES) {
                target.setInt(at, length);
                target.setBytes(at + 4, source, from, length);
                at += 4 + length;
                wire.skip(length);
            } else if (type == DataType.FP32 || type == DataType.FP64) {
                target.setBytes(at, source, from, length);
                at += length;
                wire.skip(length);
            } else {
                int outer = wire.end();
                wire.range(from, from + length);
                while (wire.hasMore()) {
                    copyOne(wire);
                }
                wire.leave(outer);
            }
        }
    }

    private void copyOne(ProtobufReader wire) {
        switch (type) {
            case BOOL -> out.put(at, (byte) (wire.readVarint() != 0 ? 1 : 0));
            case INT8 -> out.put(at, (byte) inRange((int) wire.readVarint(), Byte.MIN_VALUE, Byte.MAX_VALUE));
            case INT16 -> out.putShort(at, (short) inRange((int) wire.readVarint(), Short.MIN_VALUE, Short.MAX_VALUE));
            case INT32, UINT32 -> out.putInt(at, (int) wire.readVarint());
            case UINT8 -> out.put(at, (byte) inRange((int) wire.readVarint(), 0, 0xFF));
            case UINT16, FP16, BF16 -> out.putShort(at, (short) inRange((int) wire.readVarint(), 0, 0xFFFF));
            case INT64, UINT64 -> out.putLong(at, wire.readVarint());
            case FP32 -> out.putInt(at, wire.readFixed32());
            case FP64 -> out.putLong(at, wire.readFixed64());
            case BYTES -> throw new IllegalStateException("no single values of " + type);
        }
        at += type.size();
    }

    private long inRange(int value, int min, int max) {
        if (value < min || value > max) {
            throw ServingException.invalidArgument("value " + value + " of tensor '" + name + "' does not fit "
                    + TfDataType.of(type).protoName() + " (expected: " + min + " to " + max + ")");
        }
        return value;
    }

    /** Fills the rest of the tensor with the last value, or with zeros when no value was given. */
    void repeat(long times, boolean zeros) {
        int length = out.limit();
        if (times > 0 && zeros) {
            target.zero();
        } else if (times > 0) {
            // each step copies everything filled so far, so the number of steps is logarithmic
            int value = at - (type.isFixedSize() ? type.size() : 4 + lastTextLength);
            while (at < length) {
                int more = Math.min(at - value, length - at);
                target.setBytes(at, target, value, more);
                at += more;
            }
        }
        source = MemoryRegion.empty();
        target = MemoryRegion.empty();
        out = ByteBuffer.allocate(0);
    }

    /** Parses strings from tensor_content: the lengths of all strings as varints, followed by their bytes. */
    Tensor contentStrings(String tensor, Shape shape, MemoryRegion region, int from, int length) {
        long count = shape.elementCount();
        if (count > length) {
            throw strings(tensor, shape, length);
        }
        ProtobufReader lengths = new ProtobufReader();
        lengths.reset(region.buffer(0, region.size()));
        lengths.range(from, from + length);
        long bytes = 0;
        for (long i = 0; i < count; i++) {
            long n = lengths.readVarint();
            if (n < 0 || n > length) {
                throw strings(tensor, shape, length);
            }
            bytes += n;
        }
        int next = lengths.position();
        if (bytes != from + length - next) {
            throw strings(tensor, shape, length);
        }
        long whole = bytes + 4 * count;
        if (whole > Integer.MAX_VALUE - 64) {
            throw ServingException.invalidArgument(
                    "tensor '" + tensor + "' of shape " + shape + " takes " + whole + " bytes (expected: < 2 GiB)");
        }
        Tensor strings = Tensor.over(tensor, DataType.BYTES, shape, MemoryRegion.allocate((int) whole), 0, (int) whole);
        lengths.range(from, from + length);
        int to = 0;
        for (long i = 0; i < count; i++) {
            int n = (int) lengths.readVarint();
            strings.region().setInt(to, n);
            strings.region().setBytes(to + 4, region, next, n);
            next += n;
            to += 4 + n;
        }
        return strings;
    }

    private static ServingException strings(String tensor, Shape shape, int length) {
        return ServingException.invalidArgument("tensor '" + tensor + "' has " + length
                + " bytes of tensor_content that are not the " + shape.elementCount() + " strings of shape " + shape
                + " (expected: their lengths as varints, then their bytes)");
    }

    /** Writes the values of a tensor as one list. */
    static void write(ProtobufWriter out, int field, Tensor tensor) {
        DataType type = tensor.dataType();
        ByteBuffer in = tensor.buffer();
        int length = tensor.byteLength();
        if (type == DataType.BYTES) {
            int at = 0;
            while (at < length) {
                int size = in.getInt(at);
                out.bytesHeader(field, size);
                int to = out.reserve(size);
                in.get(at + 4, out.array(), to, size);
                at += 4 + size;
            }
            return;
        }
        int packed = out.begin(field);
        for (int at = 0; at < length; at += type.size()) {
            out.varint(integer(type, in, at));
        }
        out.end(packed);
    }

    private static long integer(DataType type, ByteBuffer in, int at) {
        return switch (type) {
            case BOOL -> in.get(at) != 0 ? 1 : 0;
            case INT8 -> in.get(at);
            case UINT8 -> in.get(at) & 0xFF;
            case INT16 -> in.getShort(at);
            case UINT16, FP16, BF16 -> in.getShort(at) & 0xFFFF;
            case INT32 -> in.getInt(at);
            case UINT32 -> in.getInt(at) & 0xFFFF_FFFFL;
            case INT64, UINT64 -> in.getLong(at);
            case FP32, FP64, BYTES -> throw new IllegalStateException("no integers in " + type);
        };
    }
}
