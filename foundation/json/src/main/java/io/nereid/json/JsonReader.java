// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ServingException;
import io.nereid.json.number.NumberScanner;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A strict streaming (pull) reader over a byte array. It allocates nothing except the strings that the caller asks
 * for, so one instance is created once and reused for many documents. In addition to the standard, the bare words
 * {@code NaN}, {@code Infinity} and {@code -Infinity} are numbers.
 *
 * <pre>{@code
 * reader.reset(bytes, 0, length);
 * reader.beginObject();
 * while (reader.nextField()) {
 *     if (reader.keyEquals("id")) {
 *         id = reader.readString();
 *     } else {
 *         reader.skipValue();
 *     }
 * }
 * reader.expectEnd();
 * }</pre>
 *
 * <p>The caller reads exactly one value after each {@link #nextField()} or {@link #hasNext()} that returns true.
 * Duplicate names are not detected: both fields are returned. Malformed text and values of the wrong kind or range are
 * rejected with INVALID_ARGUMENT, and the message contains the byte offset from the beginning of the document.
 * Confined to one thread.
 */
public final class JsonReader {
    /**
     * Number of bytes behind the document that {@link #reset} overwrites with NUL. The inner loops rely on them: they
     * read up to eight bytes at once and need no check for the end of the array.
     */
    public static final int SLACK = 16;

    /** The most bytes of a name: one without a limit would be copied, compared and quoted in messages. */
    public static final int LONGEST_NAME = 64 << 10;

    /** Nesting levels that are allowed unless the constructor sets another limit. */
    public static final int DEFAULT_MAX_DEPTH = 100;

    /** The most nesting levels of a value that is only skipped. */
    public static final int MOST_SKIPPED = 1 << 20;

    /** The current document and the position in it, which {@link TensorReader} also advances. */
    byte[] buffer = new byte[SLACK];

    int pos;
    final NumberScanner numbers = new NumberScanner();

    private int start;
    private int end;
    private final int maxDepth;
    private int limit;
    private int depth;
    private boolean fresh;
    private boolean[] objects;
    private @Nullable String context;

    private final StringScanner text = new StringScanner(this);

    /** Creates a reader that allows {@link #DEFAULT_MAX_DEPTH} levels. */
    public JsonReader() {
        this(DEFAULT_MAX_DEPTH);
    }

    /** Creates a reader that allows {@code maxDepth} levels of objects and arrays. */
    public JsonReader(int maxDepth) {
        this.maxDepth = maxDepth;
        this.limit = maxDepth;
        this.objects = new boolean[maxDepth + 1];
    }

    /**
     * Begins a document: bytes [from, to) of {@code buffer}. The next {@link #SLACK} bytes are overwritten. The reader
     * uses the array until the next reset; the caller must not change it until then.
     *
     * @throws IllegalArgumentException when the array has fewer than {@link #SLACK} bytes behind {@code to}
     */
    public void reset(byte[] buffer, int from, int to) {
        Objects.checkFromToIndex(from, to, buffer.length);
        if (buffer.length - to < SLACK) {
            throw new IllegalArgumentException("the array has " + (buffer.length - to)
                    + " bytes behind the document (expected: >= " + SLACK + ")");
        }
        // NUL is not valid anywhere in a document, so it terminates every inner loop
        Arrays.fill(buffer, to, to + SLACK, (byte) 0);
        this.buffer = buffer;
        this.start = from;
        this.end = to;
        this.pos = from;
        this.depth = 0;
        this.fresh = false;
        this.context = null;
        this.text.reset(buffer, to);
    }

    /** Sets a prefix for error messages, such as {@code input 'x'}; null removes it. */
    public void describe(@Nullable String context) {
        this.context = context;
    }

    // ---------------------------------------------------------------- structure

    /** Returns the kind of the next token and consumes only white space. */
    public JsonToken peek() {
        int c = buffer[skipSpace()];
        switch (c) {
            case '{':
                return JsonToken.OBJECT;
            case '[':
                return JsonToken.ARRAY;
            case '"':
                return JsonToken.STRING;
            case 't':
            case 'f':
                return JsonToken.BOOLEAN;
            case 'n':
                return JsonToken.NULL;
            case '}':
                return JsonToken.END_OBJECT;
            case ']':
                return JsonToken.END_ARRAY;
            default:
                if (c == '-' || c == 'N' || c == 'I' || c >= '0' && c <= '9') {
                    return JsonToken.NUMBER;
                }
                if (pos >= end) {
                    return JsonToken.END_OF_INPUT;
                }
                throw unexpected(pos, "a JSON value");
        }
    }

    /** Enters an object. */
    public void beginObject() {
        if (buffer[skipSpace()] != '{') {
            throw unexpected(pos, "an object");
        }
        enter();
        pos++;
        fresh = true;
    }

    /**
     * Advances to the value of the next field; {@link #key} then returns its name. Returns false at the end of the
     * object.
     */
    public boolean nextField() {
        byte[] b = buffer;
        int c = b[skipSpace()];
        if (fresh) {
            fresh = false;
            if (c == '}') {
                leave();
                return false;
            }
        } else if (c == ',') {
            pos++;
            c = b[skipSpace()];
        } else if (c == '}') {
            leave();
            return false;
        } else {
            throw unexpected(pos, "',' or '}'");
        }
        if (c != '"') {
            throw unexpected(pos, "a field name in quotes");
        }
        pos = text.scan(pos);
        if (b[skipSpace()] != ':') {
            throw unexpected(pos, "':' after the field name");
        }
        pos++;
        skipSpace();
        return true;
    }

    /** Whether the name of the current field equals {@code name}. */
    public boolean keyEquals(String name) {
        return textEquals(name);
    }

    /** Whether the name of the current field equals {@code utf8Name}. */
    public boolean keyEquals(byte[] utf8Name) {
        return text.equalTo(utf8Name);
    }

    /**
     * Whether the next value is an object whose first field has this name. Consumes only white space, but overwrites
     * the text that was read last.
     */
    public boolean firstKeyIs(String name) {
        int at = skipSpace();
        if (buffer[at] != '{') {
            return false;
        }
        int p = spaces(buffer, at + 1);
        if (buffer[p] != '"') {
            return false;
        }
        int unused = text.scan(p);
        return text.equalTo(name);
    }

    /** The name of the current field; valid until the next name, text or value is read. */
    public String key() {
        return name();
    }

    /** Reads a string that is a name, of which more than {@link #LONGEST_NAME} bytes are rejected. */
    public String readName() {
        readText();
        return name();
    }

    /** The text that was read last as a name: more than {@link #LONGEST_NAME} bytes are rejected. */
    public String name() {
        if (text.length > LONGEST_NAME) {
            throw error("a name has " + text.length + " bytes (expected: at most " + LONGEST_NAME + ")");
        }
        return text();
    }

    /** Enters an array. */
    public void beginArray() {
        if (buffer[skipSpace()] != '[') {
            throw unexpected(pos, "an array");
        }
        enter();
        pos++;
        fresh = true;
    }

    /**
     * Advances to the next element of an array. Returns false at the end of the array. Must be called once per
     * element.
     */
    public boolean hasNext() {
        int c = buffer[skipSpace()];
        if (fresh) {
            fresh = false;
            if (c == ']') {
                leave();
                return false;
            }
            return true;
        }
        if (c == ',') {
            pos++;
            c = buffer[skipSpace()];
            if (c == ']') {
                throw unexpected(pos, "a value after ','");
            }
            return true;
        }
        if (c == ']') {
            leave();
            return false;
        }
        throw unexpected(pos, "',' or ']'");
    }

    /**
     * The index in the array passed to {@link #reset}: the first byte of a value after {@link #nextField()},
     * {@link #hasNext()} or {@link #peek()}, and the byte after the value once it has been read.
     */
    public int position() {
        return pos;
    }

    /**
     * Moves to a value at a {@link #position()} returned earlier. The caller must read exactly that value and then
     * seek back to the position at which it left the document.
     */
    public void seek(int position) {
        if (position < start || position > end) {
            throw new IndexOutOfBoundsException("position " + position + " outside [" + start + ", " + end + "]");
        }
        pos = position;
        fresh = false;
    }

    /** Verifies that only white space follows. */
    public void expectEnd() {
        if (skipSpace() < end) {
            throw unexpected(pos, "the end of the document");
        }
    }

    /**
     * Skips a value that nothing reads, whose nesting may be deeper than that of values that are read, as long as it is
     * valid: at most {@link #MOST_SKIPPED} levels.
     */
    public void skipUnread() {
        limit = MOST_SKIPPED;
        try {
            skipValue();
        } finally {
            limit = maxDepth;
            if (objects.length > 4 * (maxDepth + 1)) {
                objects = new boolean[maxDepth + 1];
            }
        }
    }

    /**
     * Skips one value of any kind and validates its syntax. Iterative, with the kinds of the open containers in
     * {@link #objects}, so that deep nesting cannot overflow the stack.
     */
    public void skipValue() {
        byte[] b = buffer;
        int base = depth;
        int p = skipSpace();
        for (; ; ) {
            switch (b[p]) {
                case '{':
                    pos = p;
                    enter();
                    mark(true);
                    p = spaces(b, p + 1);
                    if (b[p] != '}') {
                        p = skipName(b, p);
                        continue;
                    }
                    break;
                case '[':
                    pos = p;
                    enter();
                    mark(false);
                    p = spaces(b, p + 1);
                    if (b[p] != ']') {
                        continue;
                    }
                    break;
                case '"':
                    p = text.scan(p);
                    break;
                case 't':
                    p = skipWord(p, "true");
                    break;
                case 'f':
                    p = skipWord(p, "false");
                    break;
                case 'n':
                    p = skipWord(p, "null");
                    break;
                default:
                    p = skipNumber(b, p);
            }
            // p is behind a value, or at the bracket that closes an empty container
            for (; ; ) {
                if (depth == base) {
                    pos = p;
                    return;
                }
                p = spaces(b, p);
                boolean object = objects[depth];
                if (b[p] == ',') {
                    p = spaces(b, p + 1);
                    if (object) {
                        p = skipName(b, p);
                    }
                    break;
                }
                if (b[p] != (object ? '}' : ']')) {
                    throw unexpected(p, object ? "',' or '}'" : "',' or ']'");
                }
                depth--;
                p++;
            }
        }
    }

    private int skipName(byte[] b, int from) {
        if (b[from] != '"') {
            throw unexpected(from, "a field name in quotes");
        }
        int p = spaces(b, text.scan(from));
        if (b[p] != ':') {
            throw unexpected(p, "':' after the field name");
        }
        return spaces(b, p + 1);
    }

    private int skipWord(int from, String word) {
        pos = from;
        expectWord(word, "a JSON value");
        return pos;
    }

    private int skipNumber(byte[] b, int from) {
        int p = numbers.scanFast(b, from);
        return p == NumberScanner.SLOW ? scanNumber(from, "a JSON value") : p;
    }

    // ---------------------------------------------------------------- text

    /** Reads a string. */
    public String readString() {
        readText();
        return text();
    }

    /**
     * Reads a string without creating a {@link String}. The text stays available until the next name, text or value is
     * read.
     */
    public void readText() {
        if (buffer[skipSpace()] != '"') {
            throw unexpected(pos, "a string");
        }
        pos = text.scan(pos);
    }

    /** Whether the text that was read last equals {@code s}. */
    public boolean textEquals(String s) {
        return text.equalTo(s);
    }

    /** The text that was read last, as a new string. */
    public String text() {
        return text.asString();
    }

    /** The length of the text that was read last, in bytes of UTF-8. */
    public int textLength() {
        return text.length;
    }

    /** Reads a string, appends its UTF-8 bytes to {@code sink} and returns their number. */
    public int readStringBytes(ByteSink sink) {
        readText();
        sink.append(text.bytes, text.from, text.length);
        return text.length;
    }

    /** Decodes a base64 string (padding optional), appends the bytes to {@code sink} and returns their number. */
    public int readBase64(ByteSink sink) {
        int at = skipSpace();
        readText();
        int n = Base64Codec.decode(text.bytes, text.from, text.length, sink);
        if (n < 0) {
            throw error(
                    "invalid base64 in the string" + at(at) + " (expected: letters, digits, '+', '/' and '=' padding)");
        }
        return n;
    }

    // ---------------------------------------------------------------- scalars

    /** Reads an integer. A fraction or an exponent is accepted when the value is a whole number. */
    public long readLong() {
        return readInteger(Long.MIN_VALUE, Long.MAX_VALUE, "a 64-bit integer");
    }

    /** Reads an integer from 0 to 2^64-1, as the bits of a long. */
    public long readUnsignedLong() {
        int at = skipSpace();
        pos = scanNumber(at, "a number");
        return integerBits(at, pos, true, 0, Long.MAX_VALUE, "an unsigned 64-bit integer");
    }

    /** Reads a 32-bit integer. */
    public int readInt() {
        return (int) readInteger(Integer.MIN_VALUE, Integer.MAX_VALUE, "a 32-bit integer");
    }

    private long readInteger(long min, long max, String what) {
        byte[] b = buffer;
        int at = skipSpace();
        int p = numbers.scanFast(b, at);
        if (p != NumberScanner.SLOW && numbers.exponent == 0 && numbers.digits >= 0) {
            long v = numbers.negative ? -numbers.digits : numbers.digits;
            if (v >= min && v <= max) {
                pos = p;
                return v;
            }
        }
        pos = scanNumber(at, "a number");
        return integerBits(at, pos, false, min, max, what);
    }

    /**
     * Converts the number that was scanned last to an integer in [min, max]; {@code unsigned64} widens the range to
     * [0, 2^64).
     */
    long integerBits(int from, int to, boolean unsigned64, long min, long max, String what) {
        NumberScanner n = numbers;
        if (!n.toInteger()) {
            throw n.isWhole()
                    ? outOfRange(from, to, unsigned64, min, max, what)
                    : badNumber(from, to, "not a whole number", what);
        }
        long magnitude = n.integerMagnitude();
        boolean fits;
        if (unsigned64) {
            fits = !n.negative || magnitude == 0;
        } else if (n.negative) {
            // -2^63 is the only value whose magnitude does not fit a long
            fits = (magnitude >= 0 || magnitude == Long.MIN_VALUE) && -magnitude >= min;
        } else {
            fits = magnitude >= 0 && magnitude <= max;
        }
        if (!fits) {
            throw outOfRange(from, to, unsigned64, min, max, what);
        }
        return n.negative ? -magnitude : magnitude;
    }

    private ServingException outOfRange(int from, int to, boolean unsigned64, long min, long max, String what) {
        String range = unsigned64 ? "0 to 18446744073709551615" : min + " to " + max;
        return badNumber(from, to, "out of range for " + what, range);
    }

    /** Reads a number as the nearest double. A finite number beyond the range of double is rejected. */
    public double readDouble() {
        int at = skipSpace();
        pos = scanNumber(at, "a number");
        double d = numbers.doubleValue();
        if (Double.isInfinite(d) && !numbers.isSpecial) {
            throw badNumber(at, pos, "out of range for a double", "magnitude <= " + Double.MAX_VALUE);
        }
        return d;
    }

    /** Reads a number as the nearest float. A finite number beyond the range of float is rejected. */
    public float readFloat() {
        int at = skipSpace();
        pos = scanNumber(at, "a number");
        float f = Float.intBitsToFloat(numbers.floatBits());
        if (Float.isInfinite(f) && !numbers.isSpecial) {
            throw badNumber(at, pos, "out of range for a float", "magnitude <= " + Float.MAX_VALUE);
        }
        return f;
    }

    /** Reads {@code true} or {@code false}. */
    public boolean readBoolean() {
        boolean value = buffer[skipSpace()] == 't';
        expectWord(value ? "true" : "false", "true or false");
        return value;
    }

    /** Reads {@code null}. */
    public void readNull() {
        skipSpace();
        expectWord("null", "null");
    }

    /** Reads {@code null} if it is the next token; otherwise consumes only white space. */
    public boolean tryNull() {
        if (buffer[skipSpace()] != 'n') {
            return false;
        }
        expectWord("null", "null");
        return true;
    }

    /** Whether the next token is a number without fraction and exponent. Consumes only white space. */
    public boolean isIntegral() {
        return peek() == JsonToken.NUMBER && numbers.scan(buffer, pos) != NumberScanner.SLOW && numbers.integral;
    }

    // ---------------------------------------------------------------- for the readers of this package

    /** Advances to the next byte that is not white space and returns its position. */
    int skipSpace() {
        pos = spaces(buffer, pos);
        return pos;
    }

    static int spaces(byte[] b, int from) {
        int p = from;
        while (b[p] <= ' ' && (b[p] == ' ' || b[p] == '\n' || b[p] == '\r' || b[p] == '\t')) {
            p++;
        }
        return p;
    }

    /** Increments the nesting depth; the opening bracket is at {@link #pos}. */
    void enter() {
        if (depth >= limit) {
            throw error("JSON nesting depth exceeds maximum allowed (" + limit + ")" + at(pos));
        }
        depth++;
    }

    /** Notes whether the container of this depth is an object. */
    private void mark(boolean object) {
        if (depth >= objects.length) {
            objects = Arrays.copyOf(objects, 2 * objects.length);
        }
        objects[depth] = object;
    }

    /** Decrements the nesting depth and moves behind the closing bracket at {@link #pos}. */
    void leave() {
        depth--;
        pos++;
    }

    int depth() {
        return depth;
    }

    /** Scans the number at {@code from} into {@link #numbers} and returns the position after it. */
    int scanNumber(int from, String wanted) {
        int p = numbers.scan(buffer, from);
        if (p == NumberScanner.SLOW) {
            throw unexpected(numbers.errorAt, numbers.errorAt == from ? wanted : numbers.expected);
        }
        return p;
    }

    private void expectWord(String word, String wanted) {
        for (int i = 0; i < word.length(); i++) {
            if (buffer[pos + i] != word.charAt(i)) {
                throw unexpected(i == 0 ? pos : pos + i, wanted);
            }
        }
        pos += word.length();
    }

    ServingException badNumber(int from, int to, String problem, String wanted) {
        return error("value " + NumberScanner.excerpt(buffer, from, to) + at(from) + " is " + problem + " (expected: "
                + wanted + ")");
    }

    ServingException unexpected(int p, String wanted) {
        String found;
        int c = p < end ? buffer[p] & 0xFF : -1;
        if (c < 0) {
            found = "end of the document";
        } else if (c == '{') {
            found = "object";
        } else if (c == '[') {
            found = "array";
        } else if (c == '"') {
            found = "string";
        } else if (c > ' ' && c < 0x7F) {
            found = "character '" + (char) c + "'";
        } else {
            found = "byte 0x" + Integer.toHexString(c);
        }
        return error("unexpected " + found + at(p) + " (expected: " + wanted + ")");
    }

    ServingException error(String message) {
        return ServingException.invalidArgument(context == null ? message : context + ": " + message);
    }

    String at(int p) {
        return " at byte offset " + (Math.min(p, end) - start);
    }
}
