// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.number.NumberPrinter;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes compact JSON into a growing byte array that is reused. The writer inserts the commas; the caller must close
 * every bracket and write one value after each name. Floating-point numbers are printed with the fewest digits that
 * read back to the same value (see {@link FloatStyle}), always with a point or an exponent; NaN, Infinity and
 * -Infinity are bare words. Confined to one thread.
 *
 * <pre>{@code
 * JsonWriter w = new JsonWriter(256);
 * w.beginObject().name("model").value("iris").name("shape").beginArray().value(1).value(4).endArray().endObject();
 * send(w.array(), w.length());                       // {"model":"iris","shape":[1,4]}
 * w.reset();                                         // ready for the next document
 * }</pre>
 */
public final class JsonWriter {
    private static final int MAX_CAPACITY = ByteSink.MAX_CAPACITY;
    private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

    private final NumberPrinter numbers = new NumberPrinter();
    private final ElementWriter elements = new ElementWriter(this, numbers);
    private byte[] bytes;
    private int length;
    private boolean comma;
    private FloatStyle floatStyle = FloatStyle.SHORTEST;
    private BytesStyle bytesStyle = BytesStyle.REJECT_MALFORMED;

    /** Creates a writer with an initial capacity. */
    public JsonWriter(int initialCapacity) {
        bytes = new byte[Math.max(64, initialCapacity)];
    }

    /** Clears the document; the array and the styles are kept. */
    public void reset() {
        length = 0;
        comma = false;
    }

    /** The internal array: the document is in [0, {@link #length()}). Valid until the next write. */
    public byte[] array() {
        return bytes;
    }

    /** The number of bytes written. */
    public int length() {
        return length;
    }

    /** Sets how float values and elements of FP32, FP16 and BF16 tensors are printed; SHORTEST initially. */
    public JsonWriter floatStyle(FloatStyle style) {
        floatStyle = style;
        return this;
    }

    /** Sets how elements of BYTES tensors are printed; REJECT_MALFORMED initially. */
    public JsonWriter bytesStyle(BytesStyle style) {
        bytesStyle = style;
        return this;
    }

    // ---------------------------------------------------------------- structure

    /** Writes an opening brace. */
    public JsonWriter beginObject() {
        return open('{');
    }

    /** Writes a closing brace. */
    public JsonWriter endObject() {
        return close('}');
    }

    /** Writes an opening bracket. */
    public JsonWriter beginArray() {
        return open('[');
    }

    /** Writes a closing bracket. */
    public JsonWriter endArray() {
        return close(']');
    }

    /** Writes the name of a field; exactly one value must follow. */
    public JsonWriter name(String name) {
        value(name);
        ensure(1);
        bytes[length++] = ':';
        comma = false;
        return this;
    }

    /** Writes a field name that was encoded before, including quotes, escapes and the colon. */
    public JsonWriter name(byte[] encoded) {
        rawValue(encoded, 0, encoded.length);
        comma = false;
        return this;
    }

    private JsonWriter open(char bracket) {
        separate(1);
        bytes[length++] = (byte) bracket;
        comma = false;
        return this;
    }

    private JsonWriter close(char bracket) {
        ensure(1);
        bytes[length++] = (byte) bracket;
        comma = true;
        return this;
    }

    // ---------------------------------------------------------------- values

    /** Writes a string; a lone surrogate becomes U+FFFD. */
    public JsonWriter value(String s) {
        int n = s.length();
        separate(n + 2L);
        byte[] b = bytes;
        int p = length;
        b[p++] = '"';
        for (int i = 0; i < n; i++) {
            char c = s.charAt(i);
            if (c >= 0x80 || c < 0x20 || c == '"' || c == '\\') {
                length = p;
                return hardString(s, i);
            }
            b[p++] = (byte) c;
        }
        b[p++] = '"';
        length = p;
        return this;
    }

    private JsonWriter hardString(String s, int from) {
        int n = s.length();
        ensure(6L * (n - from) + 1);
        byte[] b = bytes;
        int p = length;
        for (int i = from; i < n; i++) {
            char c = s.charAt(i);
            if (c < 0x80) {
                p = putAscii(b, p, c);
            } else if (!Character.isSurrogate(c)) {
                p = Utf8.put(b, p, c);
            } else if (Character.isHighSurrogate(c) && i + 1 < n && Character.isLowSurrogate(s.charAt(i + 1))) {
                p = Utf8.put(b, p, Character.toCodePoint(c, s.charAt(++i)));
            } else {
                p = Utf8.put(b, p, 0xFFFD);
            }
        }
        b[p++] = '"';
        length = p;
        return this;
    }

    /** Writes an integer. */
    public JsonWriter value(long v) {
        separate(NumberPrinter.MAX_LENGTH);
        length = NumberPrinter.printInt(bytes, length, v);
        return this;
    }

    /** Writes an integer. */
    public JsonWriter value(int v) {
        return value((long) v);
    }

    /** Writes a long as an unsigned integer from 0 to 2^64-1. */
    public JsonWriter unsignedValue(long v) {
        separate(NumberPrinter.MAX_LENGTH);
        length = NumberPrinter.printUnsigned(bytes, length, v);
        return this;
    }

    /** Writes {@code true} or {@code false}. */
    public JsonWriter value(boolean v) {
        return rawValue(v ? "true" : "false");
    }

    /** Writes a double. */
    public JsonWriter value(double v) {
        separate(NumberPrinter.MAX_LENGTH);
        length = numbers.printDouble(bytes, length, v);
        return this;
    }

    /** Writes a float in the current {@link FloatStyle}. */
    public JsonWriter value(float v) {
        separate(NumberPrinter.MAX_LENGTH);
        length = floatStyle == FloatStyle.WIDENED
                ? numbers.printWidened(bytes, length, v)
                : numbers.printFloat(bytes, length, v);
        return this;
    }

    /** Writes {@code null}. */
    public JsonWriter nullValue() {
        return rawValue("null");
    }

    /**
     * Writes {@code count} bytes of {@code utf8} as a string, or in another form according to {@code style}.
     *
     * @throws ServingException INVALID_ARGUMENT for malformed UTF-8 with {@link BytesStyle#REJECT_MALFORMED}
     */
    public JsonWriter value(byte[] utf8, int from, int count, BytesStyle style) {
        if (style == BytesStyle.BASE64) {
            return base64(utf8, from, count);
        }
        separate(count + 2L);
        bytes[length++] = '"';
        int p = from;
        int end = from + count;
        while (p < end) {
            int q = Utf8.skipPlain(utf8, p, end);
            ensure(q - p + 7L);
            System.arraycopy(utf8, p, bytes, length, q - p);
            length += q - p;
            p = q;
            if (p < end) {
                p += special(utf8, p, end, style);
            }
        }
        ensure(1);
        bytes[length++] = '"';
        return this;
    }

    /**
     * Writes the character at {@code p}, which needs an escape or is not ASCII, and returns its length in bytes. The
     * caller has reserved at least 7 bytes.
     */
    private int special(byte[] utf8, int p, int end, BytesStyle style) {
        int c = utf8[p];
        if (c >= 0) {
            length = putAscii(bytes, length, c);
            return 1;
        }
        int n = Utf8.sequenceLength(utf8, p, end);
        if (n > 0) {
            System.arraycopy(utf8, p, bytes, length, n);
            length += n;
            return n;
        }
        switch (style) {
            case REPLACE_MALFORMED:
                length = Utf8.put(bytes, length, 0xFFFD);
                return 1;
            case VERBATIM:
                bytes[length++] = (byte) c;
                return 1;
            default:
                throw ServingException.invalidArgument(
                        "byte 0x" + Integer.toHexString(c & 0xFF)
                                + " of a BYTES element is not valid UTF-8 (expected: UTF-8 text, the only one that"
                                + " JSON can carry)",
                        "ask for the output as binary data");
        }
    }

    private JsonWriter base64(byte[] data, int from, int count) {
        rawValue("{\"b64\":\"");
        ensure((count + 2L) / 3 * 4 + 2);
        length = Base64Codec.encode(data, from, count, bytes, length);
        bytes[length++] = '"';
        bytes[length++] = '}';
        return this;
    }

    /** Writes a JSON value that is already encoded. */
    public JsonWriter rawValue(byte[] json, int from, int count) {
        separate(count);
        System.arraycopy(json, from, bytes, length, count);
        length += count;
        return this;
    }

    /** Writes a JSON value that is already encoded in ASCII. */
    public JsonWriter rawValue(String asciiJson) {
        int n = asciiJson.length();
        separate(n);
        for (int i = 0; i < n; i++) {
            bytes[length++] = (byte) asciiJson.charAt(i);
        }
        return this;
    }

    // ---------------------------------------------------------------- tensors

    /**
     * Writes {@code count} elements as one flat array.
     *
     * @param src memory with little-endian elements, or for BYTES a 4-byte length and the bytes of each; read at
     *     absolute positions, regardless of its byte order
     * @return the position behind the last byte read
     * @throws IndexOutOfBoundsException when {@code src} ends before the elements do
     */
    public int flatArray(DataType type, ByteBuffer src, int srcPos, long count) {
        elements.begin(type, src, srcPos, count, floatStyle, bytesStyle);
        open('[');
        elements.write(count);
        close(']');
        return elements.end();
    }

    /**
     * Writes elements as nested arrays whose sizes are {@code dims[fromDim]} and the following dimensions; a bare
     * value when no dimension is left.
     *
     * @param src memory as for {@link #flatArray}
     * @return the position behind the last byte read
     * @throws IndexOutOfBoundsException when {@code src} ends before the elements do
     */
    public int nestedArray(DataType type, ByteBuffer src, int srcPos, long[] dims, int fromDim) {
        long count = 1;
        for (int i = fromDim; i < dims.length; i++) {
            count = Math.multiplyExact(count, dims[i]);
        }
        elements.begin(type, src, srcPos, count, floatStyle, bytesStyle);
        nest(dims, fromDim);
        return elements.end();
    }

    private void nest(long[] dims, int level) {
        if (level == dims.length) {
            elements.write(1);
            return;
        }
        open('[');
        if (level == dims.length - 1) {
            elements.write(dims[level]);
        } else {
            for (long i = 0; i < dims[level]; i++) {
                nest(dims, level + 1);
            }
        }
        close(']');
    }

    // ---------------------------------------------------------------- for the writers of this package

    /** Reserves {@code count} bytes and returns the array to write to, beginning at {@link #length()}. */
    byte[] reserve(long count) {
        ensure(count);
        return bytes;
    }

    /** Sets the end of the document after direct writes to the array; the document then ends with a value. */
    void advanceTo(int newLength) {
        length = newLength;
        comma = true;
    }

    boolean needsComma() {
        return comma;
    }

    private void separate(long count) {
        ensure(count + 1);
        if (comma) {
            bytes[length++] = ',';
        }
        comma = true;
    }

    private void ensure(long count) {
        if (bytes.length - length < count) {
            long needed = length + count;
            if (needed > MAX_CAPACITY) {
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        "a JSON document needs " + needed + " bytes of memory (expected: <= " + MAX_CAPACITY + ")",
                        "ask for binary data");
            }
            bytes = Arrays.copyOf(bytes, (int) Math.min(MAX_CAPACITY, Math.max(needed, 2L * bytes.length)));
        }
    }

    private static int putAscii(byte[] b, int at, int c) {
        if (c >= 0x20) {
            int p = at;
            if (c == '"' || c == '\\') {
                b[p++] = '\\';
            }
            b[p] = (byte) c;
            return p + 1;
        }
        b[at] = '\\';
        int letter = switch (c) {
            case '\b' -> 'b';
            case '\f' -> 'f';
            case '\n' -> 'n';
            case '\r' -> 'r';
            case '\t' -> 't';
            default -> 0;
        };
        if (letter != 0) {
            b[at + 1] = (byte) letter;
            return at + 2;
        }
        b[at + 1] = 'u';
        b[at + 2] = '0';
        b[at + 3] = '0';
        b[at + 4] = HEX[c >> 4];
        b[at + 5] = HEX[c & 15];
        return at + 6;
    }
}
