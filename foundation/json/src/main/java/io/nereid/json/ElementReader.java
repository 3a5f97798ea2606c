// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import io.nereid.json.number.DecimalToBinary;
import io.nereid.json.number.LittleEndian;
import io.nereid.json.number.NumberScanner;
import io.nereid.tensor.DataType;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Reads runs of comma-separated elements into little-endian bytes: the inner loops of {@link TensorReader}. A run
 * begins at an element and ends behind the last element before a bracket, or when the output range is full. Confined
 * to the reader's thread.
 *
 * <p>Every loop first tries {@link NumberScanner#scanFast} and falls back to the full scanner for unusual forms.
 */
final class ElementReader {
    private final JsonReader reader;
    private final boolean base64Objects;
    private final boolean overflow;
    private @Nullable BooleanSupplier missing;

    ElementReader(JsonReader reader, boolean base64Objects, boolean overflow) {
        this.reader = reader;
        this.base64Objects = base64Objects;
        this.overflow = overflow;
    }

    /** See {@link TensorReader#missing}. */
    void missing(@Nullable BooleanSupplier whether) {
        this.missing = whether;
    }

    /** Whether there is a {@code null} at a position, which stands for a missing value. */
    private boolean isMissing(byte[] b, int at) {
        return b[at] == 'n'
                && b[at + 1] == 'u'
                && b[at + 2] == 'l'
                && b[at + 3] == 'l'
                && missing != null
                && missing.getAsBoolean();
    }

    /**
     * Reads at least one and at most {@code room / size} elements to {@code out[from]} and returns the number of bytes
     * written.
     */
    int readRun(DataType type, byte[] out, int from, int room) {
        int to = from + room;
        return switch (type) {
            case BOOL -> readBooleans(out, from, to);
            case UINT8 -> readIntegers(type, 0, 0xFF, out, from, to);
            case UINT16 -> readIntegers(type, 0, 0xFFFF, out, from, to);
            case UINT32 -> readIntegers(type, 0, 0xFFFF_FFFFL, out, from, to);
            case UINT64 -> readIntegers(type, 0, Long.MAX_VALUE, out, from, to);
            case INT8 -> readIntegers(type, Byte.MIN_VALUE, Byte.MAX_VALUE, out, from, to);
            case INT16 -> readIntegers(type, Short.MIN_VALUE, Short.MAX_VALUE, out, from, to);
            case INT32 -> readIntegers(type, Integer.MIN_VALUE, Integer.MAX_VALUE, out, from, to);
            case INT64 -> readIntegers(type, Long.MIN_VALUE, Long.MAX_VALUE, out, from, to);
            case FP16 -> readSmallFloats(true, out, from, to);
            case BF16 -> readSmallFloats(false, out, from, to);
            case FP32 -> readFloats(out, from, to);
            case FP64 -> readDoubles(out, from, to);
            case BYTES -> throw new IllegalArgumentException("BYTES has no fixed size");
        };
    }

    /** Reads at least one and at most {@code limit} strings and returns their number. */
    long readBytesRun(ByteSink sink, long limit) {
        JsonReader r = reader;
        long n = 0;
        do {
            int c = r.buffer[r.pos];
            int at = sink.length();
            sink.appendIntLE(0);
            if (c == '{' && base64Objects) {
                readBase64Object(sink);
            } else if (c == '"') {
                r.readStringBytes(sink);
            } else if (isMissing(r.buffer, r.pos)) {
                r.readNull();
            } else {
                throw r.unexpected(r.pos, base64Objects ? "a string or {\"b64\":\"...\"}" : "a string");
            }
            sink.setIntLE(at, sink.length() - at - 4);
            n++;
        } while (n < limit && next());
        return n;
    }

    private void readBase64Object(ByteSink sink) {
        JsonReader r = reader;
        int at = r.pos;
        r.beginObject();
        if (!r.nextField() || !r.keyEquals("b64")) {
            throw notBase64(at);
        }
        r.readBase64(sink);
        if (r.nextField()) {
            throw notBase64(at);
        }
    }

    private ServingException notBase64(int at) {
        return reader.error("unexpected object" + reader.at(at) + " (expected: a string or {\"b64\":\"...\"})");
    }

    /** Skips a comma to the next element of the same list; returns false at a bracket. */
    private boolean next() {
        JsonReader r = reader;
        int p = afterComma(r.buffer, r.skipSpace());
        if (p < 0) {
            return false;
        }
        r.pos = p;
        return true;
    }

    /**
     * The position of the next element of the same list, or -1 when the byte at {@code p} is not a comma or a list
     * follows.
     */
    private static int afterComma(byte[] b, int p) {
        if (b[p] != ',') {
            return -1;
        }
        int q = p + 1;
        if (b[q] <= ' ') {
            q = JsonReader.spaces(b, q);
        }
        return b[q] == '[' ? -1 : q;
    }

    private int readFloats(byte[] out, int from, int to) {
        JsonReader r = reader;
        NumberScanner n = r.numbers;
        byte[] b = r.buffer;
        int p = r.pos;
        int o = from;
        for (; ; ) {
            int element = p;
            p = n.scanFast(b, element);
            int bits;
            if (p >= 0) {
                bits = DecimalToBinary.floatBits(n.digits, n.exponent);
                if (n.negative) {
                    bits |= 0x80000000;
                }
            } else if (isMissing(b, element)) {
                p = element + 4;
                bits = 0x7FC00000;
            } else {
                p = r.scanNumber(element, "a number");
                bits = n.floatBits();
            }
            if ((bits & 0x7FFFFFFF) == 0x7F800000 && !overflow) {
                checkInfinite(element, p, DataType.FP32, "3.4028235E38");
            }
            LittleEndian.putInt(out, o, bits);
            o += 4;
            if (b[p] <= ' ') {
                p = JsonReader.spaces(b, p);
            }
            int q;
            if (o == to || (q = afterComma(b, p)) < 0) {
                r.pos = p;
                return o - from;
            }
            p = q;
        }
    }

    private int readDoubles(byte[] out, int from, int to) {
        JsonReader r = reader;
        NumberScanner n = r.numbers;
        byte[] b = r.buffer;
        int p = r.pos;
        int o = from;
        for (; ; ) {
            int element = p;
            p = n.scanFast(b, element);
            long bits;
            if (p >= 0) {
                bits = DecimalToBinary.doubleBits(n.digits, n.exponent);
                if (n.negative) {
                    bits |= Long.MIN_VALUE;
                }
            } else if (isMissing(b, element)) {
                p = element + 4;
                bits = 0x7FF8000000000000L;
            } else {
                p = r.scanNumber(element, "a number");
                bits = Double.doubleToRawLongBits(n.doubleValue());
            }
            if ((bits & Long.MAX_VALUE) == 0x7FF0000000000000L) {
                checkInfinite(element, p, DataType.FP64, "1.7976931348623157E308");
            }
            LittleEndian.putLong(out, o, bits);
            o += 8;
            if (b[p] <= ' ') {
                p = JsonReader.spaces(b, p);
            }
            int q;
            if (o == to || (q = afterComma(b, p)) < 0) {
                r.pos = p;
                return o - from;
            }
            p = q;
        }
    }

    private int readSmallFloats(boolean fp16, byte[] out, int from, int to) {
        JsonReader r = reader;
        NumberScanner n = r.numbers;
        byte[] b = r.buffer;
        int fractionBits = fp16 ? SmallFloats.FP16_FRACTION_BITS : SmallFloats.BF16_FRACTION_BITS;
        int bias = fp16 ? SmallFloats.FP16_BIAS : SmallFloats.BF16_BIAS;
        int infinity = (2 * bias + 1) << fractionBits;
        int p = r.pos;
        int o = from;
        for (; ; ) {
            int element = p;
            p = n.scanFast(b, element);
            double d = p < 0 ? 0 : Double.longBitsToDouble(DecimalToBinary.doubleBits(n.digits, n.exponent));
            int bits;
            if (p < 0 || SmallFloats.isTie(d, fractionBits, bias)) {
                p = r.scanNumber(element, "a number");
                bits = fp16 ? n.fp16Bits() : n.bf16Bits();
            } else {
                bits = (fp16 ? SmallFloats.toFp16(d) : SmallFloats.toBf16(d)) | (n.negative ? 0x8000 : 0);
            }
            if ((bits & 0x7FFF) == infinity) {
                checkInfinite(
                        element, p, fp16 ? DataType.FP16 : DataType.BF16, fp16 ? "65504" : "3.3895313892515355E38");
            }
            LittleEndian.putShort(out, o, (short) bits);
            o += 2;
            if (b[p] <= ' ') {
                p = JsonReader.spaces(b, p);
            }
            int q;
            if (o == to || (q = afterComma(b, p)) < 0) {
                r.pos = p;
                return o - from;
            }
            p = q;
        }
    }

    private int readIntegers(DataType type, long min, long max, byte[] out, int from, int to) {
        JsonReader r = reader;
        NumberScanner n = r.numbers;
        byte[] b = r.buffer;
        int size = type.size();
        int p = r.pos;
        int o = from;
        for (; ; ) {
            int element = p;
            p = n.scanFast(b, element);
            long v = n.negative ? -n.digits : n.digits;
            if (p < 0 || n.exponent != 0 || n.digits < 0 || v < min || v > max) {
                p = r.scanNumber(element, "a number");
                v = r.integerBits(element, p, type == DataType.UINT64, min, max, type.name());
            }
            switch (size) {
                case 1:
                    out[o] = (byte) v;
                    break;
                case 2:
                    LittleEndian.putShort(out, o, (short) v);
                    break;
                case 4:
                    LittleEndian.putInt(out, o, (int) v);
                    break;
                default:
                    LittleEndian.putLong(out, o, v);
            }
            o += size;
            if (b[p] <= ' ') {
                p = JsonReader.spaces(b, p);
            }
            int q;
            if (o == to || (q = afterComma(b, p)) < 0) {
                r.pos = p;
                return o - from;
            }
            p = q;
        }
    }

    private int readBooleans(byte[] out, int from, int to) {
        JsonReader r = reader;
        int o = from;
        do {
            int element = r.pos;
            int c = r.buffer[element];
            if (c == 't' || c == 'f') {
                out[o++] = r.readBoolean() ? (byte) 1 : 0;
            } else {
                r.pos = r.scanNumber(element, "true or false");
                NumberScanner n = r.numbers;
                if (!n.toInteger() || n.integerMagnitude() >>> 1 != 0 || n.negative && n.integerMagnitude() == 1) {
                    throw r.badNumber(element, r.pos, "not a BOOL", "true, false, 0 or 1");
                }
                out[o++] = (byte) n.integerMagnitude();
            }
        } while (o < to && next());
        return o - from;
    }

    private void checkInfinite(int from, int to, DataType type, String max) {
        // a finite number that rounds to infinity is out of range; only the word Infinity may be infinite
        int c = reader.buffer[from];
        if (c != 'I' && (c != '-' || reader.buffer[from + 1] != 'I')) {
            throw reader.badNumber(from, to, "out of range for " + type, "magnitude <= " + max);
        }
    }
}
