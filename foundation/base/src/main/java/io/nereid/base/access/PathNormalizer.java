// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.access;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Brings a path into the one form in which paths are compared when access is decided: percent-decoded until nothing is
 * left to decode, without empty segments, {@code .} and {@code ..}. Stateless.
 */
final class PathNormalizer {
    /** More rounds of decoding than any server applies. */
    private static final int ROUNDS = 3;

    private PathNormalizer() {}

    static String normalize(String path) {
        if (path.indexOf('%') < 0 && path.indexOf("//") < 0 && path.indexOf("/.") < 0) {
            return path;
        }
        String decoded = path;
        for (int i = 0; i < ROUNDS && decoded.indexOf('%') >= 0; i++) {
            decoded = decode(decoded);
        }
        Deque<String> segments = new ArrayDeque<>();
        for (String segment : decoded.split("/", -1)) {
            if (segment.equals("..")) {
                segments.pollLast();
            } else if (!segment.isEmpty() && !segment.equals(".")) {
                segments.addLast(segment);
            }
        }
        return "/" + String.join("/", segments);
    }

    private static String decode(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        byte[] out = new byte[bytes.length];
        int n = 0;
        for (int i = 0; i < bytes.length; i++) {
            int high = i + 2 < bytes.length ? Character.digit(bytes[i + 1], 16) : -1;
            int low = i + 2 < bytes.length ? Character.digit(bytes[i + 2], 16) : -1;
            if (bytes[i] == '%' && high >= 0 && low >= 0) {
                out[n++] = (byte) (high << 4 | low);
                i += 2;
            } else {
                out[n++] = bytes[i];
            }
        }
        return new String(out, 0, n, StandardCharsets.UTF_8);
    }
}
