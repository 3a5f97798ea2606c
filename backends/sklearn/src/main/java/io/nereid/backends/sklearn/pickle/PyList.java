// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.util.ArrayList;
import java.util.List;

/** A Python list or set. Equal to itself only, as {@link PyDict}. Confined to the thread that reads the file. */
public final class PyList {
    private final List<Object> items = new ArrayList<>();

    public List<Object> items() {
        return items;
    }
}
