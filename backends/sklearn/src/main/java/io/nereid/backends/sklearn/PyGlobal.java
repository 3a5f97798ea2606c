// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

/** A type or function that a pickle names. Never looked up anywhere. Immutable. */
record PyGlobal(String module, String name) {
    String path() {
        return module + "." + name;
    }

    boolean isOf(String top) {
        return module.equals(top) || module.startsWith(top + ".");
    }
}
