// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

/** The name of a type or function in a pickle: opcode GLOBAL. It is never resolved. Immutable. */
public record PyGlobal(String module, String name) {
    public String path() {
        return module + "." + name;
    }

    /** Whether it belongs to a package, such as {@code sklearn}, or one below. */
    public boolean isOf(String top) {
        return module.equals(top) || module.startsWith(top + ".");
    }
}
