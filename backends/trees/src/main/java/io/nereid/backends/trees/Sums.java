// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

/** The sums of a block of rows: floats or doubles, whichever the model adds in. Confined to one invocation. */
final class Sums {
    final float[] singles;
    final double[] doubles;
    private final boolean single;

    Sums(boolean single, int size) {
        this.single = single;
        this.singles = new float[single ? size : 0];
        this.doubles = new double[single ? 0 : size];
    }

    boolean single() {
        return single;
    }

    double get(int at) {
        return single ? singles[at] : doubles[at];
    }

    void set(int at, double value) {
        if (single) {
            singles[at] = (float) value;
        } else {
            doubles[at] = value;
        }
    }
}
