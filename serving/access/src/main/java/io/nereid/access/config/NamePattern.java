// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.config;

/**
 * A pattern of names in which {@code *} stands for any text, such as {@code fraud-*}. Immutable. Matching takes time in
 * proportion to the product of both lengths at most, so that no pattern can hold up a request.
 *
 * @param text the pattern
 */
public record NamePattern(String text) {
    /** Matches every name. */
    public static final NamePattern ANY = new NamePattern("*");

    /** Whether a name matches. */
    public boolean matches(String name) {
        if (text.equals("*")) {
            return true;
        }
        int star = -1;
        int retry = 0;
        int p = 0;
        int n = 0;
        while (n < name.length()) {
            if (p < text.length() && text.charAt(p) == '*') {
                star = p++;
                retry = n;
            } else if (p < text.length() && text.charAt(p) == name.charAt(n)) {
                p++;
                n++;
            } else if (star >= 0) {
                // let the last star take one character more
                p = star + 1;
                n = ++retry;
            } else {
                return false;
            }
        }
        while (p < text.length() && text.charAt(p) == '*') {
            p++;
        }
        return p == text.length();
    }
}
