// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.base.ServingException;
import io.nereid.backends.trees.ParsedTree.LinearLeaf;
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

    private static final int MOST = Integer.MAX_VALUE - 64;

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
        int width = trees.isEmpty() ? 1 : trees.get(0).width();
        long packedNodes = 0;
        long looseNodes = 0;
        long looseLeaves = 0;
        for (ParsedTree tree : trees) {
            for (int n = 0; n < tree.nodes(); n++) {
                slot(tree.feature()[n], tree.rule()[n]);
            }
        }
        if (features.size() == 0) {
            // Leaves look at slot 0, too.
            slot(0, Slots.NAN_IS_ZERO);
        }
        boolean fits = features.size() <= 1 << 16;
        for (ParsedTree tree : trees) {
            long nodes = tree.nodes() + (long) tree.leaves();
            if (packs(tree, fits)) {
                packedNodes += nodes;
            } else {
                looseNodes += nodes;
                looseLeaves += tree.leaves();
            }
        }
        if (packedNodes > MOST || looseNodes * Forest.NODE > MOST || looseLeaves * width > MOST) {
            throw ServingException.invalidArgument(
                    "the model has " + (packedNodes + looseNodes) + " nodes (expected: fewer than 2^29)");
        }
        if (flavor == Flavor.LESS_OR_EQUAL_DOUBLE) {
            rank();
        }
        boolean single = flavor == Flavor.LESS;
        Forest.Packed packed = new Forest.Packed(
                new long[(int) packedNodes],
                single ? new float[(int) packedNodes] : null,
                new double[single ? 0 : (int) packedNodes]);
        boolean anyLinear = trees.stream().anyMatch(t -> t.linear() != null);
        double[] values = new double[(int) looseLeaves * width];
        @Nullable LinearLeaf[] linear = anyLinear ? new @Nullable LinearLeaf[(int) looseLeaves] : null;
        int[] nodes = new int[(int) looseNodes * Forest.NODE];
        Forest.Tree[] packedTrees = new Forest.Tree[trees.size()];
        int at = 0;
        int looseAt = 0;
        int leaf = 0;
        for (int t = 0; t < packedTrees.length; t++) {
            ParsedTree tree = trees.get(t);
            if (packs(tree, fits)) {
                int depth = pack(tree, packed, at);
                packedTrees[t] = new Forest.Tree(true, at, depth, tree.group());
                at += tree.nodes() + tree.leaves();
                continue;
            }
            int depth = lay(tree, nodes, looseAt, leaf);
            packedTrees[t] = new Forest.Tree(false, looseAt, depth, tree.group());
            System.arraycopy(tree.values(), 0, values, leaf * width, tree.values().length);
            LinearLeaf[] models = tree.linear();
            if (models != null && linear != null) {
                System.arraycopy(models, 0, linear, leaf, models.length);
            }
            looseAt += (tree.nodes() + tree.leaves()) * Forest.NODE;
            leaf += tree.leaves();
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
                packedTrees,
                packed,
                new Forest.Loose(nodes, sets.toArray(), values, width, linear));
    }

    private static boolean packs(ParsedTree tree, boolean fits) {
        return fits
                && tree.nodes() < 1 << 15
                && tree.categories() == null
                && tree.linear() == null
                && tree.width() == 1;
    }

    /** A tree breadth first, so that the upper levels, where all rows pass, share cache lines. Confined to one load. */
    private static final class Levels {
        private final int[] ids;
        private final int[] depths;
        private int size;
        private int deepest;

        Levels(ParsedTree tree) {
            ids = new int[tree.nodes() + tree.leaves()];
            depths = new int[ids.length];
            add(tree.nodes() == 0 ? ~0 : 0, 0);
        }

        private void add(int id, int depth) {
            ids[size] = id;
            depths[size++] = depth;
            deepest = Math.max(deepest, depth);
        }

        /** Adds the children of a node, the right one first; the place of that. */
        private int addChildren(ParsedTree tree, int at) {
            int place = size;
            add(tree.right()[ids[at]], depths[at] + 1);
            add(tree.left()[ids[at]], depths[at] + 1);
            return place;
        }
    }

    private int pack(ParsedTree tree, Forest.Packed packed, int base) {
        Levels levels = new Levels(tree);
        float[] singles = packed.singles();
        for (int q = 0; q < levels.size; q++) {
            int id = levels.ids[q];
            if (id >= 0) {
                long slot = slot(tree.feature()[id], tree.rule()[id]);
                long steps = (long) levels.addChildren(tree, q) - q;
                packed.nodes()[base + q] = (long) threshold(tree.feature()[id], tree.threshold()[id]) << 32
                        | steps << 16
                        | slot;
                continue;
            }
            packed.nodes()[base + q] = (long) Slots.LEAST << 32;
            if (singles != null) {
                singles[base + q] = (float) tree.values()[~id];
            } else {
                packed.doubles()[base + q] = tree.values()[~id];
            }
        }
        return levels.deepest;
    }

    private int lay(ParsedTree tree, int[] nodes, int base, int leafBase) {
        Levels levels = new Levels(tree);
        for (int q = 0; q < levels.size; q++) {
            int at = base + q * Forest.NODE;
            int id = levels.ids[q];
            if (id < 0) {
                nodes[at] = Slots.LEAST;
                nodes[at + 2] = at;
                nodes[at + 3] = leafBase + ~id;
                continue;
            }
            int[] @Nullable [] categories = tree.categories();
            int[] set = categories == null ? null : categories[id];
            int slot = slot(tree.feature()[id], tree.rule()[id]);
            nodes[at] = set == null ? threshold(tree.feature()[id], tree.threshold()[id]) : set(set);
            nodes[at + 1] = set == null ? slot : ~slot;
            nodes[at + 2] = base + levels.addChildren(tree, q) * Forest.NODE;
            nodes[at + 3] = set == null
                    ? 0
                    : (tree.rule()[id] == Slots.CATEGORY_OR_NONE ? 1 : 0) | (tree.missingLeft()[id] ? 2 : 0);
        }
        return levels.deepest;
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
