// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import java.util.Arrays;

/** Growable arrays of primitives. Confined to one thread. */
public final class GrowableArrays {
    private GrowableArrays() {}

    /** Integers. Confined to one thread. */
    public static final class Ints {
        private int[] items = new int[16];
        private int size;

        public void add(int value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, grown(size));
            }
            items[size++] = value;
        }

        public int size() {
            return size;
        }

        int get(int i) {
            return items[i];
        }

        void set(int i, int value) {
            items[i] = value;
        }

        public int[] toArray() {
            return Arrays.copyOf(items, size);
        }
    }

    /** Floats. Confined to one thread. */
    public static final class Floats {
        private float[] items = new float[16];
        private int size;

        public void add(float value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, grown(size));
            }
            items[size++] = value;
        }

        public float[] toArray() {
            return Arrays.copyOf(items, size);
        }
    }

    /** Doubles. Confined to one thread. */
    public static final class Doubles {
        private double[] items = new double[16];
        private int size;

        public void add(double value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, grown(size));
            }
            items[size++] = value;
        }

        public int size() {
            return size;
        }

        public double[] toArray() {
            return Arrays.copyOf(items, size);
        }
    }

    private static int grown(int size) {
        return (int) Math.min(Integer.MAX_VALUE - 8L, size * 2L);
    }
}
