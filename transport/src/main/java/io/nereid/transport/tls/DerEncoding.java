// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.tls;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The part of DER (X.690) that wrapping keys into PKCS#8 needs: encodes values, and iterates over the values in an
 * array. Confined to one thread.
 */
final class DerEncoding {
    static final int OCTETS = 0x04;
    static final int OID = 0x06;
    static final int SEQUENCE = 0x30;
    static final int CONTEXT_0 = 0xa0;

    private final byte[] bytes;
    private final int end;
    private int at;

    /** Iterates over all values of an array. */
    DerEncoding(byte[] bytes) {
        this(bytes, 0, bytes.length);
    }

    private DerEncoding(byte[] bytes, int from, int end) {
        this.bytes = bytes;
        this.at = from;
        this.end = end;
    }

    /** Encodes a value whose content is the concatenation of {@code parts}. */
    static byte[] of(int tag, byte[]... parts) {
        int length = 0;
        for (byte[] part : parts) {
            length += part.length;
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(length + 6);
        out.write(tag);
        if (length < 0x80) {
            out.write(length);
        } else {
            int n = (39 - Integer.numberOfLeadingZeros(length)) / 8;
            out.write(0x80 | n);
            for (int shift = 8 * (n - 1); shift >= 0; shift -= 8) {
                out.write(length >>> shift);
            }
        }
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }

    static byte[] sequence(byte[]... parts) {
        return of(SEQUENCE, parts);
    }

    /** Whether there is another complete value. */
    boolean more() {
        return end - at >= 2 && contentEnd() >= 0;
    }

    /** The tag of the current value. */
    int tag() {
        return bytes[at] & 0xff;
    }

    private int contentStart() {
        int length = bytes[at + 1] & 0xff;
        return at + 2 + (length < 0x80 ? 0 : length & 0x7f);
    }

    /** The end of the current value; -1 when it is truncated. */
    private int contentEnd() {
        int start = contentStart();
        int length = bytes[at + 1] & 0xff;
        if (length >= 0x80) {
            int n = length & 0x7f;
            if (n == 0 || n > 3 || start > end) {
                return -1;
            }
            length = 0;
            for (int i = at + 2; i < start; i++) {
                length = length << 8 | bytes[i] & 0xff;
            }
        }
        return length > end - start ? -1 : start + length;
    }

    /** Advances to the next value. */
    void skip() {
        at = contentEnd();
    }

    /** The current value with tag and length. */
    byte[] whole() {
        return Arrays.copyOfRange(bytes, at, contentEnd());
    }

    /** The content of the current value, without tag and length. */
    byte[] content() {
        return Arrays.copyOfRange(bytes, contentStart(), contentEnd());
    }

    /** Iterates over the content of the current value; null when its tag is another one. */
    @Nullable DerEncoding enter(int tag) {
        return more() && tag() == tag ? new DerEncoding(bytes, contentStart(), contentEnd()) : null;
    }
}
