// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Coalitions of features to evaluate, with their weights. Immutable.
 *
 * @param sets without the empty and the full set; in the order of their bits when {@code all}
 * @param weights a weight for each set
 * @param all whether these are all sets
 */
record Coalitions(List<BitSet> sets, double[] weights, boolean all) {
    /** All sets of up to 20 features. */
    static Coalitions all(int features) {
        List<BitSet> sets = new ArrayList<>();
        for (int bits = 1; bits < (1 << features) - 1; bits++) {
            sets.add(BitSet.valueOf(new long[] {bits}));
        }
        return new Coalitions(sets, new double[sets.size()], true);
    }

    /**
     * Samples sets by the weights of Kernel SHAP (Lundberg, Lee, "A Unified Approach to Interpreting Model
     * Predictions", 2017). Small and large sets have the greatest weights: these sizes are enumerated completely while
     * the number allows it. Of the sizes in between, sets are drawn at random, each together with its complement, which
     * reduces the variance.
     *
     * @param features at least 2
     * @param count the approximate number of sets
     */
    static Coalitions some(int features, int count, SplittableRandom random) {
        int half = features / 2;
        double[] share = new double[half + 1];
        double sum = 0;
        for (int size = 1; size <= half; size++) {
            // Of the sets of this size, and of their complements.
            share[size] = (features - 1.0) / (size * (double) (features - size)) * (2 * size == features ? 1 : 2);
            sum += share[size];
        }
        Map<BitSet, Double> found = new LinkedHashMap<>();
        int size = 1;
        double left = sum;
        int remaining = count;
        for (; size <= half; size++) {
            double sets = sets(features, size) * (2 * size == features ? 1 : 2);
            if (sets > remaining * share[size] / left) {
                break;
            }
            enumerate(features, size, share[size] / sum / sets, found);
            remaining -= (int) sets;
            left -= share[size];
        }
        if (size <= half) {
            draw(features, size, share, remaining, left / sum, random, found);
        }
        double[] weights =
                found.values().stream().mapToDouble(Double::doubleValue).toArray();
        return new Coalitions(List.copyOf(found.keySet()), weights, false);
    }

    /** The binomial coefficient: the number of sets of a size. */
    private static double sets(int features, int size) {
        double sets = 1;
        for (int i = 0; i < size; i++) {
            sets = sets * (features - i) / (i + 1);
        }
        return Math.rint(sets);
    }

    /** Adds all sets of a size in lexicographic order, and their complements. */
    private static void enumerate(int features, int size, double weight, Map<BitSet, Double> to) {
        int[] members = new int[size];
        for (int i = 0; i < size; i++) {
            members[i] = i;
        }
        while (true) {
            BitSet set = new BitSet(features);
            for (int member : members) {
                set.set(member);
            }
            to.put(set, weight);
            if (2 * size != features) {
                to.put(complement(set, features), weight);
            }
            int at = size - 1;
            while (at >= 0 && members[at] == features - size + at) {
                at--;
            }
            if (at < 0) {
                return;
            }
            members[at]++;
            for (int i = at + 1; i < size; i++) {
                members[i] = members[i - 1] + 1;
            }
        }
    }

    private static BitSet complement(BitSet set, int features) {
        BitSet other = (BitSet) set.clone();
        other.flip(0, features);
        return other;
    }

    /**
     * Draws sets: a size by its share, then members by a partial Fisher-Yates shuffle. A set that is drawn again gets
     * more weight. The drawn sets share {@code part} of the total weight by the number of draws.
     */
    private static void draw(
            int features,
            int from,
            double[] share,
            int remaining,
            double part,
            SplittableRandom random,
            Map<BitSet, Double> to) {
        double total = 0;
        for (int size = from; size < share.length; size++) {
            total += share[size];
        }
        Map<BitSet, Double> drawn = new LinkedHashMap<>();
        int[] order = new int[features];
        for (int i = 0; i < features; i++) {
            order[i] = i;
        }
        int counted = 0;
        for (int tries = 0; drawn.size() + 1 < remaining && tries < 4 * remaining; tries++) {
            double at = random.nextDouble() * total;
            int size = from;
            while (size < share.length - 1 && at >= share[size]) {
                at -= share[size++];
            }
            BitSet set = new BitSet(features);
            for (int i = 0; i < size; i++) {
                int other = i + random.nextInt(features - i);
                int kept = order[i];
                order[i] = order[other];
                order[other] = kept;
                set.set(order[i]);
            }
            drawn.merge(set, 1.0, Double::sum);
            drawn.merge(complement(set, features), 1.0, Double::sum);
            counted += 2;
        }
        for (Map.Entry<BitSet, Double> e : drawn.entrySet()) {
            to.put(e.getKey(), e.getValue() * part / counted);
        }
    }
}
