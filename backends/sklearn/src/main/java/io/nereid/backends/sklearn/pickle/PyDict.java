// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A Python dict. Equal to itself only: a file can nest a value in itself, and comparing contents would not end.
 * Confined to the thread that reads the file.
 */
public final class PyDict {
    private final Map<Object, Object> items = new LinkedHashMap<>();

    public Map<Object, Object> items() {
        return items;
    }
}
