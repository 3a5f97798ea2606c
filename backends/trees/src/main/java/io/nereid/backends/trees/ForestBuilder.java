// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.base.ServingException;
import io.nereid.backends.trees.ParsedTree.LinearLeaf;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Packs parsed trees. Confined to one load. */
final class ForestBuilder {
    /** Words of all sets of categories of a model, so that a small file cannot ask for much memory. */
    static final int MOST_SET_WORDS = 1 << 24;

    private final List<ParsedTree> trees;
    private final Flavor flavor;
    private final Map<Long, Integer> slots = new HashMap<>();
    private final Vectors.Ints features = new Vectors.Ints();
    private final Vectors.Ints rules = new Vectors.Ints();
    private final Map<Integer, double[]> ranks = new HashMap<>();
    private final Vectors.Ints sets = new Vectors.Ints();

    /** How thresholds compare. */
    enum Flavor {
        /** Left when a float is less. */
        LESS,
        /** Left when a value is less or equal; rows are floats. */
        LESS_OR_EQUAL,
        /** Left when a value is less or equal; rows are doubles. */
        LESS_OR_EQUAL_DOUBLE
    }

    ForestBuilder(List<ParsedTree> trees, Flavor flavor) {
        this.trees = trees;
        this.flavor = flavor;
    }

    /** @throws ServingException INVALID_ARGUMENT when there is too much of it */
    Forest build() {
        long count = 0;
        long leaves = 0;
        int width = trees.isEmpty() ? 1 : trees.get(0).width();
        for (ParsedTree tree : trees) {
            count += tree.nodes() + (long) tree.leaves();
            leaves += tree.leaves();
        }
        if (count * Forest.NODE > Integer.MAX_VALUE - 64 || leaves * width > Integer.MAX_VALUE - 64) {
            throw ServingException.invalidArgument("the model has " + count + " nodes (expected: fewer than 2^29)");
        }
        if (flavor == Flavor.LESS_OR_EQUAL_DOUBLE) {
            rank();
        }
        boolean single = flavor == Flavor.LESS;
        boolean anyLinear = trees.stream().anyMatch(t -> t.linear() != null);
        int[] nodes = new int[(int) count * Forest.NODE];
        int[] roots = new int[trees.size()];
        int[] depths = new int[trees.size()];
        int[] groups = new int[trees.size()];
        boolean[] categorical = new boolean[trees.size()];
        float[] singles = single ? new float[(int) leaves * width] : null;
        double[] doubles = new double[single ? 0 : (int) leaves * width];
        @Nullable LinearLeaf[] linear = anyLinear ? new @Nullable LinearLeaf[(int) leaves] : null;
        int at = 0;
        int leaf = 0;
        for (int t = 0; t < roots.length; t++) {
            ParsedTree tree = trees.get(t);
            roots[t] = at;
            groups[t] = tree.group();
            categorical[t] = tree.categories() != null;
            depths[t] = pack(tree, nodes, at, leaf);
            for (int i = 0; i < tree.values().length; i++) {
                if (singles != null) {
                    singles[leaf * width + i] = (float) tree.values()[i];
                } else {
                    doubles[leaf * width + i] = tree.values()[i];
                }
            }
            LinearLeaf[] models = tree.linear();
            if (models != null && linear != null) {
                System.arraycopy(models, 0, linear, leaf, models.length);
            }
            at += (tree.nodes() + tree.leaves()) * Forest.NODE;
            leaf += tree.leaves();
        }
        if (features.size() == 0) {
            // Leaves look at slot 0, too.
            slot(0, Slots.NAN_IS_ZERO);
        }
        byte[] ruleOf = new byte[rules.size()];
        for (int s = 0; s < ruleOf.length; s++) {
            ruleOf[s] = (byte) rules.get(s);
        }
        double[][] ranksOf = new double[flavor == Flavor.LESS_OR_EQUAL_DOUBLE ? ruleOf.length : 0][];
        for (int s = 0; s < ranksOf.length; s++) {
            ranksOf[s] = ranks.getOrDefault(features.get(s), new double[0]);
        }
        return new Forest(
                new Slots(features.toArray(), ruleOf, flavor != Flavor.LESS, ranksOf),
                nodes,
                roots,
                depths,
                groups,
                categorical,
                sets.toArray(),
                singles,
                doubles,
                width,
                linear);
    }

    /** Breadth first, so that the upper levels, where all rows pass, share cache lines. The tree's depth. */
    private int pack(ParsedTree tree, int[] nodes, int base, int leafBase) {
        int[] queue = new int[tree.nodes() + tree.leaves()];
        int[] depth = new int[queue.length];
        queue[0] = tree.nodes() == 0 ? ~0 : 0;
        int size = 1;
        int deepest = 0;
        for (int q = 0; q < size; q++) {
            int at = base + q * Forest.NODE;
            int id = queue[q];
            if (id < 0) {
                nodes[at] = Slots.LEAST;
                nodes[at + 1] = 0;
                nodes[at + 2] = at;
                nodes[at + 3] = leafBase + ~id;
                continue;
            }
            int[] @Nullable [] categories = tree.categories();
            int[] set = categories == null ? null : categories[id];
            int slot = slot(tree.feature()[id], tree.rule()[id]);
            nodes[at] = set == null ? threshold(tree.feature()[id], tree.threshold()[id]) : set(set);
            nodes[at + 1] = set == null ? slot : ~slot;
            nodes[at + 2] = base + size * Forest.NODE;
            nodes[at + 3] = set == null
                    ? 0
                    : (tree.rule()[id] == Slots.CATEGORY_OR_NONE ? 1 : 0) | (tree.missingLeft()[id] ? 2 : 0);
            deepest = Math.max(deepest, depth[q] + 1);
            depth[size] = depth[q] + 1;
            queue[size++] = tree.right()[id];
            depth[size] = depth[q] + 1;
            queue[size++] = tree.left()[id];
        }
        return deepest;
    }

    private int slot(int feature, byte rule) {
        long key = (long) feature << 8 | rule;
        Integer known = slots.get(key);
        if (known != null) {
            return known;
        }
        int slot = features.size();
        features.add(feature);
        rules.add(rule);
        slots.put(key, slot);
        return slot;
    }

    private int set(int[] words) {
        int at = sets.size();
        sets.add(words.length);
        for (int word : words) {
            sets.add(word);
        }
        return at;
    }

    /** The number below which a row's number goes left. */
    private int threshold(int feature, double value) {
        switch (flavor) {
            case LESS:
                return Slots.number((float) value);
            case LESS_OR_EQUAL:
                // A float is at most a double when it is at most the greatest float that is not above it.
                float below = (float) value;
                if (below > value) {
                    below = Math.nextDown(below);
                }
                return Slots.number(below) + 1;
            default:
                return Arrays.binarySearch(ranks.getOrDefault(feature, new double[0]), value + 0.0) + 1;
        }
    }

    private void rank() {
        Map<Integer, TreeSet<Double>> found = new HashMap<>();
        for (ParsedTree tree : trees) {
            for (int n = 0; n < tree.nodes(); n++) {
                // Zero has one sign here, as it has for compares.
                found.computeIfAbsent(tree.feature()[n], f -> new TreeSet<>()).add(tree.threshold()[n] + 0.0);
            }
        }
        found.forEach((feature, thresholds) -> ranks.put(
                feature, thresholds.stream().mapToDouble(Double::doubleValue).toArray()));
    }
}
