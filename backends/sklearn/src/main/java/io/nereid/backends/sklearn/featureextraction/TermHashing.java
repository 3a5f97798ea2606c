// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.featureextraction;

import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * The columns and signs of terms by their hash, MurmurHash3 for x86 of 32 bits (Austin Appleby, public domain). Immutable.
 */
final class TermHashing {
    private static final int MOST_COLUMNS = 1 << 24;

    private final int width;
    private final boolean signs;
    private final String norm;

    private TermHashing(int width, boolean signs, String norm) {
        this.width = width;
        this.signs = signs;
        this.norm = norm;
    }

    static TermHashing of(EstimatorAttributes f) {
        int width = f.integer("n_features", 1 << 20);
        if (width < 1 || width > MOST_COLUMNS) {
            throw UnsupportedModel.unsupported(
                    f.path() + " has " + width + " features (expected: 1 to " + MOST_COLUMNS + ")");
        }
        String norm = f.text("norm", "");
        if (f.has("norm") && !norm.equals("l1") && !norm.equals("l2")) {
            throw f.unsupported("norm");
        }
        return new TermHashing(width, f.flag("alternate_sign", true), norm);
    }

    int width() {
        return width;
    }

    /** Counts the terms of one row, and scales the row to length one where it is normalised. */
    void count(List<String> terms, boolean binary, double[] to, int from) {
        int[] places = new int[terms.size()];
        for (int i = 0; i < places.length; i++) {
            int hash = murmur(terms.get(i).getBytes(StandardCharsets.UTF_8));
            // The remainder of the absolute value, which does not fit for the least number.
            places[i] = from + (int) (Math.abs((long) hash) % width);
            to[places[i]] += signs && hash < 0 ? -1 : 1;
        }
        double length = 0;
        for (int i = 0; i < places.length; i++) {
            to[places[i]] = binary ? 1 : to[places[i]];
        }
        if (norm.isEmpty()) {
            return;
        }
        Arrays.sort(places);
        for (int i = 0; i < places.length; i++) {
            double v = i > 0 && places[i] == places[i - 1] ? 0 : to[places[i]];
            length += norm.equals("l1") ? Math.abs(v) : v * v;
        }
        length = norm.equals("l1") ? length : Math.sqrt(length);
        for (int i = 0; length > 0 && i < places.length; i++) {
            if (i == 0 || places[i] != places[i - 1]) {
                to[places[i]] /= length;
            }
        }
    }

    private static int murmur(byte[] bytes) {
        int hash = 0;
        int whole = bytes.length & ~3;
        for (int i = 0; i < whole; i += 4) {
            int k = (bytes[i] & 255) | (bytes[i + 1] & 255) << 8 | (bytes[i + 2] & 255) << 16 | bytes[i + 3] << 24;
            hash = Integer.rotateLeft(hash ^ mixed(k), 13) * 5 + 0xe6546b64;
        }
        int rest = 0;
        for (int i = bytes.length - 1; i >= whole; i--) {
            rest = rest << 8 | (bytes[i] & 255);
        }
        hash ^= mixed(rest) ^ bytes.length;
        hash = (hash ^ hash >>> 16) * 0x85ebca6b;
        hash = (hash ^ hash >>> 13) * 0xc2b2ae35;
        return hash ^ hash >>> 16;
    }

    private static int mixed(int k) {
        return Integer.rotateLeft(k * 0xcc9e2d51, 15) * 0x1b873593;
    }
}
