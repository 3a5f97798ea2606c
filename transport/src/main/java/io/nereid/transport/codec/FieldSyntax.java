// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.codec;

import io.netty.util.AsciiString;

/**
 * The syntax of methods, targets, hosts, and of the names and values of header fields (RFC 9110, section 5; RFC 9113,
 * section 8.2.1). HTTP/1.1 and HTTP/2 apply the same rules to what they receive and to what the proxy forwards:
 * characters that HTTP/2 carries as data delimit fields and requests in HTTP/1.1, so a field that passes here cannot
 * become another field or request on the next connection. Holds no mutable state.
 */
public final class FieldSyntax {
    private static final int TOKEN = 1;
    private static final int VALUE = 2;
    private static final int TARGET = 4;
    private static final int HOST = 8;
    private static final int SCHEME = 16;

    /** For each byte the sets that it belongs to. */
    private static final byte[] SETS = new byte[256];

    static {
        for (int c = 0; c < 256; c++) {
            boolean letter = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z';
            boolean digit = c >= '0' && c <= '9';
            int sets = 0;
            if (letter || digit || c != 0 && c < 128 && "!#$%&'*+-.^_`|~".indexOf(c) >= 0) {
                sets |= TOKEN;
            }
            if (c >= ' ' && c != 127 || c == '\t') {
                sets |= VALUE;
            }
            if (c > ' ' && c < 127) {
                sets |= TARGET;
            }
            if (letter || digit || c != 0 && c < 128 && "-._~%!$&'()*+,;=:[]".indexOf(c) >= 0) {
                sets |= HOST;
            }
            if (letter || digit || c == '+' || c == '-' || c == '.') {
                sets |= SCHEME;
            }
            SETS[c] = (byte) sets;
        }
    }

    private FieldSyntax() {}

    /** Whether a byte may be part of a token, of which methods and field names consist. */
    public static boolean isTokenByte(byte b) {
        return (SETS[b & 0xff] & TOKEN) != 0;
    }

    /** Whether a text is a token. */
    public static boolean isToken(CharSequence text) {
        return text.length() > 0 && consistsOf(text, TOKEN);
    }

    /** Whether a text is a field value: no control characters but tabs, and no white space at its ends. */
    public static boolean isValue(CharSequence text) {
        int length = text.length();
        return length == 0
                || text.charAt(0) != ' '
                        && text.charAt(0) != '\t'
                        && text.charAt(length - 1) != ' '
                        && text.charAt(length - 1) != '\t'
                        && consistsOf(text, VALUE);
    }

    /** Whether a text has no control characters but tabs, so that it cannot end the line of a field in HTTP/1.1. */
    public static boolean isText(CharSequence text) {
        return consistsOf(text, VALUE);
    }

    /** Whether a text is a request target in origin form: it begins with a slash and has visible ASCII characters. */
    public static boolean isTarget(CharSequence text) {
        return text.length() > 0 && text.charAt(0) == '/' && consistsOf(text, TARGET);
    }

    /** Whether a text consists of the characters of a host and a port, without a user name; an empty one does. */
    public static boolean isHost(CharSequence text) {
        return consistsOf(text, HOST);
    }

    /** Whether a text is a scheme, such as {@code https}. */
    public static boolean isScheme(CharSequence text) {
        if (text.length() == 0) {
            return false;
        }
        char first = text.charAt(0);
        return (first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z') && consistsOf(text, SCHEME);
    }

    private static boolean consistsOf(CharSequence text, int set) {
        if (text instanceof AsciiString ascii) {
            byte[] bytes = ascii.array();
            int end = ascii.arrayOffset() + ascii.length();
            for (int i = ascii.arrayOffset(); i < end; i++) {
                if ((SETS[bytes[i] & 0xff] & set) == 0) {
                    return false;
                }
            }
            return true;
        }
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c > 255 || (SETS[c] & set) == 0) {
                return false;
            }
        }
        return true;
    }
}
