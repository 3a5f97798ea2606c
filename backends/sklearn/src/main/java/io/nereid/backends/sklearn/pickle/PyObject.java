// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An object of a model file: the name of its type, and its attributes as data. No code of the type runs. Confined to
 * the thread that reads the file.
 */
public final class PyObject {
    private final PyGlobal type;
    private final List<Object> arguments;
    private final Map<String, Object> attributes = new LinkedHashMap<>();
    private final PyDict entries = new PyDict();
    private final PyList elements = new PyList();
    private @Nullable Object state;

    PyObject(PyGlobal type, List<Object> arguments) {
        this.type = type;
        this.arguments = arguments;
    }

    public PyGlobal type() {
        return type;
    }

    /** The arguments of its constructor. */
    public List<Object> arguments() {
        return arguments;
    }

    public Map<String, Object> attributes() {
        return attributes;
    }

    /** Its entries, for a subclass of dict. */
    public PyDict entries() {
        return entries;
    }

    /** Its elements, for a subclass of list. */
    public PyList elements() {
        return elements;
    }

    /** Its state, when that is not a dict of attributes. */
    public @Nullable Object state() {
        return state;
    }

    /** Sets the state as Python does for a class without {@code __setstate__}: a dict, or a tuple of dict and slots. */
    void build(Object value) {
        if (value instanceof PyDict dict) {
            dict.items().forEach((k, v) -> {
                if (k instanceof String name) {
                    attributes.put(name, v);
                }
            });
        } else if (value instanceof PyTuple two
                && two.size() == 2
                && (two.get(0) instanceof PyDict || two.get(0) == PyNone.NONE)
                && two.get(1) instanceof PyDict) {
            build(two.get(0));
            build(two.get(1));
        } else if (value != PyNone.NONE) {
            state = value;
        }
    }
}
