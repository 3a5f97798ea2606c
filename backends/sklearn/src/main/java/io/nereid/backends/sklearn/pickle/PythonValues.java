// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

/** Converts plain Python values to Java values. Stateless. */
public final class PythonValues {
    private PythonValues() {}

    /** The value as a double: a number, a boolean, an array of one number, or None as NaN. */
    public static double number(Object value) {
        if (value instanceof Number n) {
            return n.doubleValue();
        }
        if (value instanceof Boolean b) {
            return b ? 1 : 0;
        }
        if (value == PyNone.NONE) {
            return Double.NaN;
        }
        if (value instanceof NdArray a && a.count() == 1) {
            return a.doubles()[0];
        }
        throw UnsupportedModel.unsupported("it has " + kind(value) + " (expected: a number)");
    }

    static int[] ints(double[] values) {
        int[] ints = new int[values.length];
        for (int i = 0; i < ints.length; i++) {
            ints[i] = (int) values[i];
        }
        return ints;
    }

    /** The type of a value, for messages. */
    public static String kind(Object value) {
        if (value instanceof PyObject o) {
            return o.type().path();
        }
        if (value instanceof PyGlobal g) {
            return g.path();
        }
        return value == PyNone.NONE
                ? "None"
                : value instanceof String ? "text" : value.getClass().getSimpleName();
    }
}
