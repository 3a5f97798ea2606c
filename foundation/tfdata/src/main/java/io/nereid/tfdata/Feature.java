// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One feature of an example: a list of byte strings, floats or 64-bit integers. Immutable, provided that the arrays
 * are not changed.
 */
public final class Feature {
    /** The type of the values; the ordinal equals the field number in the protobuf message. */
    public enum Kind {
        /** No list is set. */
        NONE,
        BYTES,
        FLOAT,
        INT64
    }

    private static final byte[][] NO_BYTES = {};
    private static final float[] NO_FLOATS = {};
    private static final long[] NO_LONGS = {};
    static final Feature NONE = new Feature(Kind.NONE, NO_BYTES, NO_FLOATS, NO_LONGS);

    private final Kind kind;
    private final byte[][] bytes;
    private final float[] floats;
    private final long[] longs;

    private Feature(Kind kind, byte[][] bytes, float[] floats, long[] longs) {
        this.kind = kind;
        this.bytes = bytes;
        this.floats = floats;
        this.longs = longs;
    }

    /** Byte strings. */
    public static Feature ofBytes(List<byte[]> values) {
        return new Feature(Kind.BYTES, values.toArray(NO_BYTES), NO_FLOATS, NO_LONGS);
    }

    /** Strings, encoded as UTF-8. */
    public static Feature ofTexts(String... values) {
        return ofBytes(Arrays.stream(values)
                .map(v -> v.getBytes(StandardCharsets.UTF_8))
                .toList());
    }

    /** Floats. */
    public static Feature ofFloats(float... values) {
        return new Feature(Kind.FLOAT, NO_BYTES, values.clone(), NO_LONGS);
    }

    /** Integers. */
    public static Feature ofLongs(long... values) {
        return new Feature(Kind.INT64, NO_BYTES, NO_FLOATS, values.clone());
    }

    /** The type of the values. */
    public Kind kind() {
        return kind;
    }

    /** Number of values. */
    public int size() {
        return bytes.length + floats.length + longs.length;
    }

    /** The {@code i}-th byte string. */
    public byte[] bytesAt(int i) {
        return bytes[i];
    }

    /** The {@code i}-th float. */
    public float floatAt(int i) {
        return floats[i];
    }

    /** The {@code i}-th integer. */
    public long longAt(int i) {
        return longs[i];
    }

    /** The {@code i}-th number, a float or an integer. */
    double numberAt(int i) {
        return kind == Kind.FLOAT ? floats[i] : longs[i];
    }

    /** Parses the message in the reader's range. */
    static Feature read(ProtobufReader wire) {
        Feature value = NONE;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            int field = tag >>> 3;
            if ((tag & 7) != ProtobufReader.BYTES || field < 1 || field > 3) {
                wire.skipField(tag);
                continue;
            }
            int outer = wire.enter();
            Feature next = readList(wire, Kind.values()[field]);
            wire.leave(outer);
            value = value.kind == next.kind ? value.and(next) : next;
        }
        return value;
    }

    /** Concatenates two parts of the same list: protobuf merges a field that occurs twice. */
    private Feature and(Feature more) {
        byte[][] b = Arrays.copyOf(bytes, bytes.length + more.bytes.length);
        System.arraycopy(more.bytes, 0, b, bytes.length, more.bytes.length);
        float[] f = Arrays.copyOf(floats, floats.length + more.floats.length);
        System.arraycopy(more.floats, 0, f, floats.length, more.floats.length);
        long[] l = Arrays.copyOf(longs, longs.length + more.longs.length);
        System.arraycopy(more.longs, 0, l, longs.length, more.longs.length);
        return new Feature(kind, b, f, l);
    }

    private static Feature readList(ProtobufReader wire, Kind kind) {
        return switch (kind) {
            case BYTES -> readBytes(wire);
            case FLOAT -> readFloats(wire);
            case INT64 -> readLongs(wire);
            case NONE -> NONE;
        };
    }

    private static Feature readBytes(ProtobufReader wire) {
        List<byte[]> values = new ArrayList<>();
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag != (1 << 3 | ProtobufReader.BYTES)) {
                wire.skipField(tag);
                continue;
            }
            int length = wire.readLength();
            byte[] value = new byte[length];
            ByteBuffer buffer = wire.buffer();
            buffer.get(wire.position(), value);
            wire.skip(length);
            values.add(value);
        }
        return ofBytes(values);
    }

    private static Feature readFloats(ProtobufReader wire) {
        float[] values = NO_FLOATS;
        int n = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag == (1 << 3 | ProtobufReader.BYTES)) {
                int outer = wire.enter();
                values = Arrays.copyOf(values, n + (wire.end() - wire.position() + 3) / 4);
                while (wire.hasMore()) {
                    values[n++] = Float.intBitsToFloat(wire.readFixed32());
                }
                wire.leave(outer);
            } else if (tag == (1 << 3 | ProtobufReader.FIXED32)) {
                if (n == values.length) {
                    values = Arrays.copyOf(values, Math.max(4, n * 2));
                }
                values[n++] = Float.intBitsToFloat(wire.readFixed32());
            } else {
                wire.skipField(tag);
            }
        }
        return new Feature(Kind.FLOAT, NO_BYTES, n == values.length ? values : Arrays.copyOf(values, n), NO_LONGS);
    }

    private static Feature readLongs(ProtobufReader wire) {
        long[] values = NO_LONGS;
        int n = 0;
        while (wire.hasMore()) {
            int tag = wire.readTag();
            boolean packed = tag == (1 << 3 | ProtobufReader.BYTES);
            if (!packed && tag != (1 << 3 | ProtobufReader.VARINT)) {
                wire.skipField(tag);
                continue;
            }
            int outer = packed ? wire.enter() : wire.end();
            while (packed ? wire.hasMore() : wire.end() == outer) {
                if (n == values.length) {
                    values = Arrays.copyOf(values, Math.max(4, n * 2));
                }
                values[n++] = wire.readVarint();
                if (!packed) {
                    break;
                }
            }
            if (packed) {
                wire.leave(outer);
            }
        }
        return new Feature(Kind.INT64, NO_BYTES, NO_FLOATS, n == values.length ? values : Arrays.copyOf(values, n));
    }

    /** Writes this feature as a message field. */
    void write(ProtobufWriter out, int field) {
        int message = out.begin(field);
        if (kind != Kind.NONE) {
            int list = out.begin(kind.ordinal());
            for (byte[] value : bytes) {
                out.bytesField(1, value);
            }
            if (floats.length > 0) {
                out.bytesHeader(1, floats.length * 4);
                for (float value : floats) {
                    out.fixed32(Float.floatToRawIntBits(value));
                }
            }
            if (longs.length > 0) {
                int packed = out.begin(1);
                for (long value : longs) {
                    out.varint(value);
                }
                out.end(packed);
            }
            out.end(list);
        }
        out.end(message);
    }

    @Override
    public boolean equals(Object o) {
        return o instanceof Feature f
                && kind == f.kind
                && Arrays.deepEquals(bytes, f.bytes)
                && Arrays.equals(floats, f.floats)
                && Arrays.equals(longs, f.longs);
    }

    @Override
    public int hashCode() {
        return Arrays.deepHashCode(new Object[] {kind, bytes, floats, longs});
    }

    @Override
    public String toString() {
        return kind == Kind.BYTES
                ? Arrays.stream(bytes)
                        .map(b -> new String(b, StandardCharsets.UTF_8))
                        .toList()
                        .toString()
                : kind == Kind.FLOAT ? Arrays.toString(floats) : Arrays.toString(longs);
    }
}
