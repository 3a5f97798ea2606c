// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import io.nereid.json.number.LittleEndian;
import io.nereid.json.number.NumberPrinter;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;

/**
 * Prints comma-separated tensor elements: the inner loops of {@link JsonWriter}. Elements of fixed size are copied in
 * blocks to a staging array. Confined to the writer's thread.
 */
final class ElementWriter {
    private static final int STAGING_BYTES = 4096;
    private static final ByteBuffer NONE = ByteBuffer.allocate(0);

    private final JsonWriter writer;
    private final NumberPrinter numbers;
    private byte[] staging = new byte[STAGING_BYTES];
    private int staged;
    private int next;

    private DataType type = DataType.BOOL;
    private ByteBuffer source = NONE;
    private int position;
    private int limit;
    private boolean widened;
    private BytesStyle bytesStyle = BytesStyle.REJECT_MALFORMED;

    ElementWriter(JsonWriter writer, NumberPrinter numbers) {
        this.writer = writer;
        this.numbers = numbers;
    }

    /** Begins an array of {@code count} elements. */
    void begin(DataType type, ByteBuffer source, int position, long count, FloatStyle floats, BytesStyle bytes) {
        this.type = type;
        this.source = source;
        this.position = position;
        this.widened = floats == FloatStyle.WIDENED;
        this.bytesStyle = bytes;
        this.staged = 0;
        this.next = 0;
        this.limit = source.limit();
        if (type.isFixedSize()) {
            int size = type.size();
            if (position < 0 || count < 0 || count > (limit - position) / size) {
                throw new IndexOutOfBoundsException(
                        count + " elements of " + type + " at " + position + " of a buffer with limit " + limit);
            }
            this.limit = position + (int) (count * size);
        }
    }

    /** Ends the array and returns the position behind the last byte read. */
    int end() {
        source = NONE;
        return position - (staged - next);
    }

    /** Prints the next {@code count} elements. */
    void write(long count) {
        if (type == DataType.BYTES) {
            writeBytes(count);
            return;
        }
        int size = type.size();
        long left = count;
        while (left > 0) {
            if (next == staged) {
                staged = Math.min(STAGING_BYTES, limit - position);
                source.get(position, staging, 0, staged);
                position += staged;
                next = 0;
            }
            int n = (int) Math.min(left, (staged - next) / size);
            byte[] b = writer.reserve((long) n * (NumberPrinter.MAX_LENGTH + 1));
            int p = writer.length();
            if (writer.needsComma()) {
                b[p++] = ',';
            }
            // every number is followed by a comma; the last comma is dropped again
            writer.advanceTo(print(b, p, n) - 1);
            left -= n;
        }
    }

    private int print(byte[] b, int at, int n) {
        byte[] s = staging;
        int from = next;
        int to = from + n * type.size();
        next = to;
        int p = at;
        switch (type) {
            case FP32:
                if (widened) {
                    for (int i = from; i < to; i += 4) {
                        p = numbers.printWidened(b, p, Float.intBitsToFloat(LittleEndian.getInt(s, i)));
                        b[p++] = ',';
                    }
                } else {
                    for (int i = from; i < to; i += 4) {
                        p = numbers.printFloat(b, p, Float.intBitsToFloat(LittleEndian.getInt(s, i)));
                        b[p++] = ',';
                    }
                }
                break;
            case FP64:
                for (int i = from; i < to; i += 8) {
                    p = numbers.printDouble(b, p, Double.longBitsToDouble(LittleEndian.getLong(s, i)));
                    b[p++] = ',';
                }
                break;
            case FP16:
                for (int i = from; i < to; i += 2) {
                    short v = LittleEndian.getShort(s, i);
                    p = widened ? numbers.printWidened(b, p, SmallFloats.fp16ToFloat(v)) : numbers.printFp16(b, p, v);
                    b[p++] = ',';
                }
                break;
            case BF16:
                for (int i = from; i < to; i += 2) {
                    short v = LittleEndian.getShort(s, i);
                    p = widened ? numbers.printWidened(b, p, SmallFloats.bf16ToFloat(v)) : numbers.printBf16(b, p, v);
                    b[p++] = ',';
                }
                break;
            case BOOL:
                for (int i = from; i < to; i++) {
                    p = printBoolean(b, p, s[i] != 0);
                    b[p++] = ',';
                }
                break;
            case UINT64:
                for (int i = from; i < to; i += 8) {
                    p = NumberPrinter.printUnsigned(b, p, LittleEndian.getLong(s, i));
                    b[p++] = ',';
                }
                break;
            default:
                p = printIntegers(b, p, from, to);
        }
        return p;
    }

    private int printIntegers(byte[] b, int at, int from, int to) {
        byte[] s = staging;
        int size = type.size();
        int p = at;
        for (int i = from; i < to; i += size) {
            long v = switch (type) {
                case INT8 -> s[i];
                case UINT8 -> s[i] & 0xFF;
                case INT16 -> LittleEndian.getShort(s, i);
                case UINT16 -> LittleEndian.getShort(s, i) & 0xFFFF;
                case INT32 -> LittleEndian.getInt(s, i);
                case UINT32 -> LittleEndian.getInt(s, i) & 0xFFFF_FFFFL;
                default -> LittleEndian.getLong(s, i);
            };
            p = NumberPrinter.printInt(b, p, v);
            b[p++] = ',';
        }
        return p;
    }

    private static int printBoolean(byte[] b, int p, boolean v) {
        // "true" and "fals" as little-endian integers
        LittleEndian.putInt(b, p, v ? 0x65757274 : 0x736C6166);
        b[p + 4] = 'e';
        return v ? p + 4 : p + 5;
    }

    private void writeBytes(long count) {
        for (long i = 0; i < count; i++) {
            int length = -1;
            if (limit - position >= 4) {
                source.get(position, staging, 0, 4);
                length = LittleEndian.getInt(staging, 0);
            }
            if (length < 0 || length > limit - position - 4) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "BYTES element " + i + " at byte " + position + " has length " + length + " (expected: 0 to "
                                + Math.max(0, limit - position - 4) + ")");
            }
            if (staging.length < length) {
                staging = new byte[Math.max(length, (int) Math.min(Integer.MAX_VALUE - 16, 2L * staging.length))];
            }
            source.get(position + 4, staging, 0, length);
            position += 4 + length;
            writer.value(staging, 0, length, bytesStyle);
        }
        if (staging.length > 1 << 20) {
            staging = new byte[STAGING_BYTES];
        }
    }
}
