// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

/**
 * The scores of a block of rows while trees are added: as floats for XGBoost and doubles for LightGBM, because rounding
 * must be that of the library. Confined to one instance.
 */
public final class ScoreAccumulator {
    final float[] singles;
    final double[] doubles;
    private final boolean single;

    public ScoreAccumulator(boolean single, int size) {
        this.single = single;
        this.singles = new float[single ? size : 0];
        this.doubles = new double[single ? 0 : size];
    }

    boolean single() {
        return single;
    }

    public double get(int at) {
        return single ? singles[at] : doubles[at];
    }

    public void set(int at, double value) {
        if (single) {
            singles[at] = (float) value;
        } else {
            doubles[at] = value;
        }
    }
}
