// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.util.List;

/** A Python tuple. Equal to itself only, so that comparing never follows its contents. Immutable. */
public final class PyTuple {
    private final List<Object> items;

    PyTuple(List<Object> items) {
        this.items = List.copyOf(items);
    }

    int size() {
        return items.size();
    }

    public Object get(int i) {
        if (i >= items.size()) {
            throw UnsupportedModel.corrupt(
                    "a tuple has " + items.size() + " items (expected: at least " + (i + 1) + ")");
        }
        return items.get(i);
    }

    public List<Object> items() {
        return items;
    }
}
