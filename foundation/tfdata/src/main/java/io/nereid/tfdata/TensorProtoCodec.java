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
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Reads and writes {@code tensorflow.TensorProto}. Content that the message stores in the layout of a tensor
 * (tensor_content, and packed floats and doubles) becomes a view of the message without a copy; everything else is
 * converted. Reading takes two passes: the first records the byte ranges of the values, the second copies them into a
 * tensor of known size. Confined to one thread, which reuses the codec for many messages.
 *
 * <pre>{@code
 * Tensor t = TensorProtoCodec.parse("x", protoBytes);          // the caller closes the tensor
 * byte[] bytes = TensorProtoCodec.toBytes(t, true);            // as tensor_content
 * }</pre>
 */
public final class TensorProtoCodec {
    /**
     * Limit of the bytes that the tensors of one message may need beyond the message's own size. A TensorProto may
     * omit trailing values, which then repeat the last one, so a small message could otherwise demand a huge tensor.
     */
    public static final long EXPANSION_LIMIT = 64L << 20;

    private static final int MAX_RANK = 254;

    private final ProtobufReader wire;
    private final TensorProtoValues values = new TensorProtoValues();
    private long[] dims = new long[8];
    private int[] spans = new int[16];
    private int spanCount;
    private int rank;
    private long number;
    private boolean unknownRank;
    private int contentAt;
    private int contentLength;
    private int otherField;
    private long expansionLeft = EXPANSION_LIMIT;

    /** Creates a codec that reads from {@code wire}. */
    public TensorProtoCodec(ProtobufReader wire) {
        this.wire = wire;
    }

    /** Begins a new message and resets the expansion budget. */
    public void begin() {
        expansionLeft = EXPANSION_LIMIT;
    }

    /** Parses a whole message as a tensor, which the caller owns. */
    public static Tensor parse(String name, byte[] message) {
        MemoryRegion region = MemoryRegion.copyOf(message, 0, message.length);
        try {
            ProtobufReader wire = new ProtobufReader();
            wire.reset(region.buffer(0, region.size()));
            return new TensorProtoCodec(wire).read(name, region);
        } finally {
            region.release();
        }
    }

    /**
     * Estimates the bytes that {@link #read} would convert one by one in the message in the reader's range, without
     * reading the values. The reader's position is not changed.
     */
    public long bytesToConvert() {
        int from = wire.position();
        long bytes = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if ((tag & 7) == ProtobufReader.BYTES && tag >>> 3 > 6) {
                int length = wire.readLength();
                bytes += length;
                wire.skip(length);
            } else {
                bytes += tag >>> 3 > 4 && (tag & 7) != ProtobufReader.BYTES ? 4 : 0;
                wire.skipField(tag);
            }
        }
        wire.range(from, wire.end());
        return bytes;
    }

    /**
     * Parses the message in the reader's range, up to its end.
     *
     * @param name the name of the returned tensor
     * @param region the region that the reader's buffer views, from its first byte
     * @return a tensor that the caller owns
     * @throws ServingException INVALID_ARGUMENT, with the tensor's name, for a malformed tensor or an unsupported type
     */
    public Tensor read(String name, MemoryRegion region) {
        rank = 0;
        number = 0;
        unknownRank = false;
        contentLength = 0;
        scan(name);
        DataType type = TfDataType.dataType(number, name);
        Shape shape = shape(name);
        if (contentLength > 0) {
            return content(name, type, shape, region);
        }
        return typed(name, type, shape, region);
    }

    private void scan(String name) {
        spanCount = 0;
        otherField = 0;
        while (wire.hasMore()) {
            int start = wire.position();
            int tag = wire.readTag();
            switch (tag) {
                case 1 << 3 | ProtobufReader.VARINT -> number = wire.readVarint();
                case 2 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    scanShape(name);
                    wire.leave(outer);
                }
                case 4 << 3 | ProtobufReader.BYTES -> {
                    contentLength = wire.readLength();
                    contentAt = wire.position();
                    wire.skip(contentLength);
                }
                default -> {
                    int from = wire.position();
                    wire.skipField(tag);
                    if (tag >>> 3 >= 5 && tag >>> 3 <= 18) {
                        addSpan(tag, start, from, wire.position());
                    }
                }
            }
        }
    }

    private void addSpan(int tag, int start, int from, int to) {
        // adjacent fields of one number and wire type form one span, so that an unpacked list needs only one entry
        if (spanCount > 0 && spans[spanCount * 3 - 3] == tag && spans[spanCount * 3 - 1] == start) {
            spans[spanCount * 3 - 1] = to;
            return;
        }
        if (spans.length < spanCount * 3 + 3) {
            spans = Arrays.copyOf(spans, spans.length * 2);
        }
        spans[spanCount * 3] = tag;
        spans[spanCount * 3 + 1] = from;
        spans[spanCount * 3 + 2] = to;
        spanCount++;
    }

    private void scanShape(String name) {
        while (wire.hasMore()) {
            int tag = wire.readTag();
            switch (tag) {
                case 2 << 3 | ProtobufReader.BYTES -> {
                    int outer = wire.enter();
                    long size = 0;
                    while (wire.hasMore()) {
                        int inner = wire.readTag();
                        if (inner == (1 << 3 | ProtobufReader.VARINT)) {
                            size = wire.readVarint();
                        } else {
                            wire.skipField(inner);
                        }
                    }
                    wire.leave(outer);
                    if (rank == MAX_RANK) {
                        throw ServingException.invalidArgument(
                                "tensor '" + name + "' has more than " + MAX_RANK + " dimensions");
                    }
                    if (rank == dims.length) {
                        dims = Arrays.copyOf(dims, rank * 2);
                    }
                    dims[rank++] = size;
                }
                case 3 << 3 | ProtobufReader.VARINT -> unknownRank = wire.readVarint() != 0;
                default -> wire.skipField(tag);
            }
        }
    }

    private Shape shape(String name) {
        if (unknownRank) {
            throw ServingException.invalidArgument(
                    "tensor '" + name + "' has a shape of unknown rank (expected: every dimension, none below 0)");
        }
        long[] exact = Arrays.copyOf(dims, rank);
        for (long d : exact) {
            if (d < 0) {
                throw ServingException.invalidArgument("tensor '" + name + "' has shape " + Arrays.toString(exact)
                        + " with dimension " + d + " (expected: >= 0)");
            }
        }
        Shape shape = Shape.of(exact);
        try {
            shape.elementCount();
        } catch (ServingException e) {
            throw ServingException.invalidArgument("tensor '" + name + "': " + e.getMessage());
        }
        return shape;
    }

    private Tensor content(String name, DataType type, Shape shape, MemoryRegion region) {
        if (!type.isFixedSize()) {
            return values.contentStrings(name, shape, region, contentAt, contentLength);
        }
        long expected = shape.byteSize(type);
        if (expected != contentLength) {
            throw ServingException.invalidArgument("tensor '" + name + "' has " + contentLength
                    + " bytes of tensor_content, but shape " + shape + " of "
                    + TfDataType.of(type).protoName() + " takes "
                    + expected);
        }
        return Tensor.over(name, type, shape, region.retain(), contentAt, contentLength);
    }

    private Tensor typed(String name, DataType type, Shape shape, MemoryRegion region) {
        int field = field(type);
        long elements = shape.elementCount();
        long count = 0;
        long textBytes = 0;
        int used = 0;
        for (int i = 0; i < spanCount; i++) {
            int tag = spans[i * 3];
            if (tag >>> 3 != field || !fits(tag, field)) {
                otherField = tag >>> 3;
                continue;
            }
            wire.range(spans[i * 3 + 1], spans[i * 3 + 2]);
            count += values.count(name, wire, tag);
            if (field == 8) {
                textBytes = values.textBytes(name, wire, spans[i * 3 + 1], spans[i * 3 + 2], textBytes);
            }
            spans[used * 3] = tag;
            spans[used * 3 + 1] = spans[i * 3 + 1];
            spans[used * 3 + 2] = spans[i * 3 + 2];
            used++;
        }
        if (count == 0 && otherField != 0 && elements > 0) {
            throw ServingException.invalidArgument(
                    "tensor '" + name + "' of " + TfDataType.of(type).protoName()
                            + " has its values in " + fieldName(otherField) + " (expected: in " + fieldName(field)
                            + " or tensor_content)");
        }
        if (count > elements) {
            throw ServingException.invalidArgument("tensor '" + name + "' has " + count + " values in "
                    + fieldName(field) + ", but shape " + shape + " takes " + elements);
        }
        if (count == elements && used == 1 && count > 0 && (field == 5 || field == 6)) {
            int bytes = (int) (elements * type.size());
            if ((spans[0] & 7) == ProtobufReader.BYTES && spans[2] - spans[1] == bytes + varintSize(bytes)) {
                // a single packed list of floats or doubles has the layout of the tensor: return a view
                return Tensor.over(name, type, shape, region.retain(), spans[2] - bytes, bytes);
            }
        }
        return convert(name, type, shape, region, elements, count, textBytes, used);
    }

    private static int varintSize(int value) {
        return value < 1 << 7 ? 1 : value < 1 << 14 ? 2 : value < 1 << 21 ? 3 : value < 1 << 28 ? 4 : 5;
    }

    private Tensor convert(
            String name,
            DataType type,
            Shape shape,
            MemoryRegion region,
            long elements,
            long count,
            long textBytes,
            int used) {
        int lastText = count == 0 ? 0 : values.lastTextLength();
        long each = type.isFixedSize() ? type.size() : 4L + lastText;
        long more = expansion(name, shape, elements - count, each);
        Tensor tensor;
        if (type.isFixedSize()) {
            tensor = Tensor.allocate(name, type, shape);
        } else {
            long bytes = 4L * count + textBytes + more;
            if (bytes > Integer.MAX_VALUE - 64) {
                throw ServingException.invalidArgument(
                        "tensor '" + name + "' of shape " + shape + " takes " + bytes + " bytes (expected: < 2 GiB)");
            }
            tensor = Tensor.over(name, type, shape, MemoryRegion.allocate((int) bytes), 0, (int) bytes);
        }
        boolean done = false;
        try {
            values.into(tensor, region);
            for (int i = 0; i < used; i++) {
                wire.range(spans[i * 3 + 1], spans[i * 3 + 2]);
                values.copy(wire, spans[i * 3]);
            }
            values.repeat(elements - count, count == 0);
            done = true;
            return tensor;
        } finally {
            if (!done) {
                tensor.close();
            }
        }
    }

    /** Returns the bytes needed for repeated values. Rejects too many before anything is allocated. */
    private long expansion(String name, Shape shape, long elements, long each) {
        if (elements == 0) {
            return 0;
        }
        if (elements > expansionLeft / each) {
            throw ServingException.invalidArgument(
                    "tensor '" + name + "' of shape " + shape
                            + " gives too few values: repeating the last one would take "
                            + (Math.multiplyHigh(elements, each) == 0 && elements * each > 0
                                    ? elements * each + " bytes"
                                    : "2^63 bytes or more")
                            + " (expected: at most " + EXPANSION_LIMIT + " for a whole request)",
                    "send every value, best as tensor_content");
        }
        expansionLeft -= elements * each;
        return elements * each;
    }

    private static boolean fits(int tag, int field) {
        int wireType = tag & 7;
        return wireType == ProtobufReader.BYTES
                || field != 8
                        && wireType
                                == switch (field) {
                                    case 5 -> ProtobufReader.FIXED32;
                                    case 6 -> ProtobufReader.FIXED64;
                                    default -> ProtobufReader.VARINT;
                                };
    }

    /** The TensorProto field that holds the values of a type. */
    static int field(DataType type) {
        return switch (type) {
            case FP32 -> 5;
            case FP64 -> 6;
            case INT8, INT16, INT32, UINT8, UINT16 -> 7;
            case BYTES -> 8;
            case INT64 -> 10;
            case BOOL -> 11;
            case FP16, BF16 -> 13;
            case UINT32 -> 16;
            case UINT64 -> 17;
        };
    }

    private static String fieldName(int field) {
        return switch (field) {
            case 5 -> "float_val";
            case 6 -> "double_val";
            case 7 -> "int_val";
            case 8 -> "string_val";
            case 9 -> "scomplex_val";
            case 10 -> "int64_val";
            case 11 -> "bool_val";
            case 12 -> "dcomplex_val";
            case 13 -> "half_val";
            case 14 -> "resource_handle_val";
            case 15 -> "variant_val";
            case 16 -> "uint32_val";
            case 17 -> "uint64_val";
            default -> "float8_val";
        };
    }

    /**
     * Writes a tensor as a message field.
     *
     * @param content whether to write tensor_content instead of the field of the type; strings are never written as
     *     tensor_content
     */
    public static void write(ProtobufWriter out, int field, Tensor tensor, boolean content) {
        int message = out.begin(field);
        int rest = writeHead(out, tensor, content);
        if (rest > 0) {
            int at = out.reserve(rest);
            tensor.region().getBytes(tensor.offset(), out.array(), at, rest);
        }
        out.end(message);
    }

    /**
     * Writes the content of a message except for the tensor's own bytes where these can be sent unchanged; the sender
     * appends them at the end.
     *
     * @return how many bytes the sender must append: all of the tensor's, or 0
     */
    public static int writeHead(ProtobufWriter out, Tensor tensor, boolean content) {
        DataType type = tensor.dataType();
        out.varintField(1, TfDataType.of(type).number());
        writeShape(out, 2, tensor.shape());
        int length = tensor.byteLength();
        if (length == 0) {
            return 0;
        }
        if (content && type.isFixedSize()) {
            out.bytesHeader(4, length);
            return length;
        }
        switch (type) {
            case FP32, FP64 -> {
                out.bytesHeader(field(type), length);
                return length;
            }
            default -> TensorProtoValues.write(out, field(type), tensor);
        }
        return 0;
    }

    /** Writes a shape as a message field; -1 stands for an unknown size. */
    public static void writeShape(ProtobufWriter out, int field, Shape shape) {
        int message = out.begin(field);
        for (int i = 0; i < shape.rank(); i++) {
            int dim = out.begin(2);
            if (shape.dim(i) != 0) {
                out.varintField(1, shape.dim(i));
            }
            out.end(dim);
        }
        out.end(message);
    }

    /** Serializes a tensor. */
    public static byte[] toBytes(Tensor tensor, boolean content) {
        ProtobufWriter out = new ProtobufWriter();
        int rest = writeHead(out, tensor, content);
        byte[] bytes = Arrays.copyOf(out.array(), out.length() + rest);
        tensor.region().getBytes(tensor.offset(), bytes, out.length(), rest);
        return bytes;
    }

    /** A little-endian view of an array, for a {@link ProtobufReader}. */
    static ByteBuffer view(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
