// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

/**
 * What a handler may rely on. The transport answers for an exception of a handler, so a violation is kept here until the target asks
 * for it. Confined to one thread.
 */
final class RequestChecks {
    private static String violation;

    private RequestChecks() {}

    /** A header as a handler sees it: it can be written into another request as it is. */
    static void header(String name, String value) {
        if (name.isEmpty()) {
            violation = "a header without a name";
        }
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (c <= ' ' || c == 127 || c == ':' && i > 0) {
                violation = "the header name '" + name + "' has character " + (int) c;
            }
        }
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '\r' || c == '\n' || c == 0) {
                violation = "the value of header '" + name + "' has character " + (int) c;
            }
        }
    }

    /** Keeps a violation. */
    static void violated(String what) {
        violation = what;
    }

    /** Throws the violation, if there was one. */
    static void verify() {
        String found = violation;
        violation = null;
        if (found != null) {
            throw new AssertionError(found);
        }
    }
}
