// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

/**
 * Matches glob patterns: {@code *} for any text, {@code ?} for any one character; a backslash escapes the next
 * character. Stateless.
 */
final class GjsonWildcards {
    private GjsonWildcards() {}

    /**
     * Whether a pattern matches a whole text. Matches greedily: after a mismatch it returns to the last {@code *} and
     * lets it take one more character. Earlier stars need not be tried again, so the time is bounded by the product of
     * the lengths.
     */
    static boolean fits(String pattern, String text) {
        int p = 0;
        int t = 0;
        int star = -1;
        int from = 0;
        while (t < text.length()) {
            if (p < pattern.length() && pattern.charAt(p) == '*') {
                star = p++;
                from = t;
                continue;
            }
            if (p < pattern.length()) {
                char c = pattern.charAt(p);
                boolean escaped = c == '\\' && p + 1 < pattern.length();
                char expected = escaped ? pattern.charAt(p + 1) : c;
                if ((!escaped && c == '?') || expected == text.charAt(t)) {
                    p += escaped ? 2 : 1;
                    t++;
                    continue;
                }
            }
            if (star < 0) {
                return false;
            }
            p = star + 1;
            t = ++from;
        }
        while (p < pattern.length() && pattern.charAt(p) == '*') {
            p++;
        }
        return p == pattern.length();
    }
}
