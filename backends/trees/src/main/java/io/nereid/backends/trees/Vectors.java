// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import java.util.Arrays;

/** Arrays that grow. Confined to one thread. */
final class Vectors {
    private Vectors() {}

    /** Whole numbers. Confined to one thread. */
    static final class Ints {
        private int[] items = new int[16];
        private int size;

        void add(int value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, grown(size));
            }
            items[size++] = value;
        }

        int size() {
            return size;
        }

        int get(int i) {
            return items[i];
        }

        void set(int i, int value) {
            items[i] = value;
        }

        int[] toArray() {
            return Arrays.copyOf(items, size);
        }
    }

    /** Floats. Confined to one thread. */
    static final class Floats {
        private float[] items = new float[16];
        private int size;

        void add(float value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, grown(size));
            }
            items[size++] = value;
        }

        float[] toArray() {
            return Arrays.copyOf(items, size);
        }
    }

    /** Doubles. Confined to one thread. */
    static final class Doubles {
        private double[] items = new double[16];
        private int size;

        void add(double value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, grown(size));
            }
            items[size++] = value;
        }

        int size() {
            return size;
        }

        double[] toArray() {
            return Arrays.copyOf(items, size);
        }
    }

    private static int grown(int size) {
        return (int) Math.min(Integer.MAX_VALUE - 8L, size * 2L);
    }
}
