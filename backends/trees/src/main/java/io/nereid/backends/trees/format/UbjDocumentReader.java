// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.format;

import io.nereid.backends.trees.forest.GrowableArrays;
import io.nereid.base.ServingException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * Reads a document in Universal Binary JSON: one-letter types before big-endian numbers; arrays and objects with or
 * without a header of count and element type. Confined to one thread.
 */
final class UbjDocumentReader implements DocumentReader {
    private static final int MAX_DEPTH = 100;
    private static final int OPEN = -1;

    private final byte[] bytes;
    private final int end;
    private int pos;
    private int depth;
    private String key = "";

    /** The type of the next value, when the container's header declares it; 0 when it precedes the value. */
    private int announced;

    private final long[] left = new long[MAX_DEPTH + 1];
    private final int[] types = new int[MAX_DEPTH + 1];
    private final boolean[] skipping = new boolean[MAX_DEPTH + 1];

    UbjDocumentReader(byte[] bytes, int length) {
        this.bytes = bytes;
        this.end = length;
    }

    @Override
    public void beginObject() {
        open('{', "an object");
    }

    @Override
    public void beginArray() {
        open('[', "an array");
    }

    private void open(int bracket, String expected) {
        int type = type();
        if (type != bracket) {
            throw wrong(type, expected);
        }
        if (++depth > MAX_DEPTH) {
            throw bad("more than " + MAX_DEPTH + " levels");
        }
        header();
    }

    /** Reads the optional header of an array or object: element type and count. */
    private void header() {
        types[depth] = 0;
        left[depth] = OPEN;
        if (peek() == '$') {
            pos++;
            types[depth] = next();
            if (peek() != '#') {
                throw bad("an element type is declared without a count");
            }
        }
        if (peek() == '#') {
            pos++;
            left[depth] = count();
            boolean weightless =
                    types[depth] == 'T' || types[depth] == 'F' || types[depth] == 'Z' || types[depth] == 'N';
            // Elements of a type without payload (null, true, false) take no bytes, so their number is limited as well.
            if (left[depth] > (weightless ? 0 : end - pos)) {
                throw bad(left[depth] + " elements are declared, more than there are bytes");
            }
        }
    }

    /** Whether there is another element before the closing bracket. */
    private boolean more(int closing) {
        if (left[depth] == OPEN) {
            while (peek() == 'N') {
                pos++;
            }
            if (peek() == closing) {
                pos++;
                depth--;
                return false;
            }
        } else if (left[depth]-- == 0) {
            depth--;
            return false;
        }
        return true;
    }

    @Override
    public boolean nextField() {
        if (!more('}')) {
            return false;
        }
        key = string();
        announced = types[depth];
        return true;
    }

    @Override
    public boolean hasNext() {
        if (!more(']')) {
            return false;
        }
        announced = types[depth];
        return true;
    }

    @Override
    public String key() {
        return key;
    }

    @Override
    public String text() {
        int type = type();
        switch (type) {
            case 'S':
            case 'H':
                return string();
            case 'C':
                return String.valueOf((char) next());
            case 'T':
                return "true";
            case 'F':
                return "false";
            case 'd':
            case 'D':
                return String.valueOf(number(type));
            default:
                return String.valueOf(whole(type));
        }
    }

    @Override
    public float[] floats() {
        GrowableArrays.Floats items = new GrowableArrays.Floats();
        beginArray();
        while (hasNext()) {
            items.add((float) number(type()));
        }
        return items.toArray();
    }

    @Override
    public int[] ints() {
        GrowableArrays.Ints items = new GrowableArrays.Ints();
        beginArray();
        while (hasNext()) {
            items.add(JsonDocumentReader.whole(number(type())));
        }
        return items.toArray();
    }

    @Override
    public void skip() {
        int outer = depth;
        skipOne();
        while (depth > outer) {
            boolean object = skipping[depth];
            if (object ? nextField() : hasNext()) {
                skipOne();
            }
        }
    }

    private void skipOne() {
        int type = type();
        switch (type) {
            case '{':
            case '[':
                if (++depth > MAX_DEPTH) {
                    throw bad("more than " + MAX_DEPTH + " levels");
                }
                skipping[depth] = type == '{';
                header();
                int size = size(types[depth]);
                if (type == '[' && size > 0 && left[depth] != OPEN) {
                    skipBytes(left[depth] * size);
                    depth--;
                }
                return;
            case 'S':
            case 'H':
                skipBytes(count());
                return;
            case 'T':
            case 'F':
            case 'Z':
            case 'N':
                return;
            default:
                int bytesOf = size(type);
                if (bytesOf == 0) {
                    throw wrong(type, "a value");
                }
                skipBytes(bytesOf);
        }
    }

    private void skipBytes(long n) {
        if (n > end - pos) {
            throw bad("the document is truncated");
        }
        pos += (int) n;
    }

    @Override
    public void end() {
        if (pos != end) {
            throw bad("there are " + (end - pos) + " bytes after the document");
        }
    }

    private static int size(int type) {
        switch (type) {
            case 'i':
            case 'U':
            case 'C':
                return 1;
            case 'I':
                return 2;
            case 'l':
            case 'd':
                return 4;
            case 'L':
            case 'D':
                return 8;
            default:
                return 0;
        }
    }

    private int type() {
        int type = announced;
        announced = 0;
        if (type != 0) {
            return type;
        }
        do {
            type = next();
        } while (type == 'N');
        return type;
    }

    private double number(int type) {
        switch (type) {
            case 'd':
                return Float.intBitsToFloat((int) big(4));
            case 'D':
                return Double.longBitsToDouble(big(8));
            case 'T':
                return 1;
            case 'F':
                return 0;
            default:
                return whole(type);
        }
    }

    private long whole(int type) {
        switch (type) {
            case 'i':
                return (byte) big(1);
            case 'U':
                return big(1) & 0xff;
            case 'I':
                return (short) big(2);
            case 'l':
                return (int) big(4);
            case 'L':
                return big(8);
            default:
                throw wrong(type, "a number");
        }
    }

    private long big(int size) {
        if (size > end - pos) {
            throw bad("the document is truncated");
        }
        long value = 0;
        for (int i = 0; i < size; i++) {
            value = value << 8 | (bytes[pos++] & 0xff);
        }
        return value;
    }

    private long count() {
        long n = whole(next());
        if (n < 0) {
            throw bad("a count of " + n);
        }
        return n;
    }

    private String string() {
        long n = count();
        if (n > end - pos) {
            throw bad("a text of " + n + " bytes exceeds the document");
        }
        String text = new String(bytes, pos, (int) n, StandardCharsets.UTF_8);
        pos += (int) n;
        return text;
    }

    private int peek() {
        return pos < end ? bytes[pos] & 0xff : -1;
    }

    private int next() {
        if (pos >= end) {
            throw bad("the document is truncated");
        }
        return bytes[pos++] & 0xff;
    }

    private ServingException wrong(int type, String expected) {
        String found = type > 32 && type < 127
                ? "'" + (char) type + "'"
                : String.format(Locale.ROOT, "byte 0x%02x", type & 0xff);
        return bad("found " + found + " (expected: " + expected + ")");
    }

    private ServingException bad(String what) {
        return ServingException.invalidArgument("at byte " + pos + " of the UBJ document: " + what);
    }
}
