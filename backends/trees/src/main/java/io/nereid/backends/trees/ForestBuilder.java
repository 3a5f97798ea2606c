// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backends.trees.ParsedTree.LinearLeaf;
import io.nereid.base.ServingException;
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
                packedNodes += isEven(new Levels(tree)) ? 0 : nodes;
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
        List<Forest.Even> evens = new ArrayList<>();
        for (int t = 0; t < packedTrees.length; t++) {
            ParsedTree tree = trees.get(t);
            Levels levels = new Levels(tree);
            if (packs(tree, fits) && isEven(levels)) {
                packedTrees[t] = new Forest.Tree(Forest.Kind.EVEN, evens.size(), levels.deepest, tree.group());
                evens.add(fill(tree, levels.deepest, single));
                continue;
            }
            if (packs(tree, fits)) {
                pack(tree, levels, packed, at);
                packedTrees[t] = new Forest.Tree(Forest.Kind.PACKED, at, levels.deepest, tree.group());
                at += tree.nodes() + tree.leaves();
                continue;
            }
            lay(tree, levels, nodes, looseAt, leaf);
            packedTrees[t] = new Forest.Tree(Forest.Kind.LOOSE, looseAt, levels.deepest, tree.group());
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
                evens.toArray(Forest.Even[]::new),
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

    /** Whether a tree is flat and full enough to be filled up. */
    private static boolean isEven(Levels levels) {
        int depth = levels.deepest;
        return depth <= Forest.MOST_EVEN && (depth <= 4 || (2L << depth) <= 4L * levels.ids.length);
    }

    /** A tree breadth first, so that the upper levels, where all rows pass, share cache lines. Confined to one load. */
    private static final class Levels {
        private final int[] ids;
        /** By place, where the right child is, before the left one. */
        private final int[] children;

        private int size;
        private int deepest;

        Levels(ParsedTree tree) {
            ids = new int[tree.nodes() + tree.leaves()];
            children = new int[ids.length];
            ids[size++] = tree.nodes() == 0 ? ~0 : 0;
            int end = 1;
            for (int at = 0; at < size; at++) {
                if (at == end) {
                    deepest++;
                    end = size;
                }
                int id = ids[at];
                if (id >= 0) {
                    children[at] = size;
                    ids[size++] = tree.right()[id];
                    ids[size++] = tree.left()[id];
                }
            }
        }
    }

    private Forest.Even fill(ParsedTree tree, int depth, boolean single) {
        long[] nodes = new long[1 << depth];
        float[] singles = new float[single ? 1 << depth : 0];
        double[] doubles = new double[single ? 0 : 1 << depth];
        int[] ids = new int[2 << depth];
        ids[1] = tree.nodes() == 0 ? ~0 : 0;
        for (int n = 1; n < ids.length; n++) {
            int id = ids[n];
            if (n < nodes.length) {
                // Below a leaf there are only leaves, and whichever of them a row goes to has its value.
                ids[2 * n] = id < 0 ? id : tree.right()[id];
                ids[2 * n + 1] = id < 0 ? id : tree.left()[id];
                nodes[n] = id < 0
                        ? (long) Slots.LEAST << 32
                        : (long) threshold(tree.feature()[id], tree.threshold()[id]) << 32
                                | slot(tree.feature()[id], tree.rule()[id]);
            } else if (single) {
                singles[n - nodes.length] = (float) tree.values()[~id];
            } else {
                doubles[n - nodes.length] = tree.values()[~id];
            }
        }
        return new Forest.Even(nodes, single ? singles : null, doubles);
    }

    private void pack(ParsedTree tree, Levels levels, Forest.Packed packed, int base) {
        float[] singles = packed.singles();
        for (int q = 0; q < levels.size; q++) {
            int id = levels.ids[q];
            if (id >= 0) {
                long slot = slot(tree.feature()[id], tree.rule()[id]);
                long steps = (long) levels.children[q] - q;
                packed.nodes()[base + q] =
                        (long) threshold(tree.feature()[id], tree.threshold()[id]) << 32 | steps << 16 | slot;
                continue;
            }
            packed.nodes()[base + q] = (long) Slots.LEAST << 32;
            if (singles != null) {
                singles[base + q] = (float) tree.values()[~id];
            } else {
                packed.doubles()[base + q] = tree.values()[~id];
            }
        }
    }

    private void lay(ParsedTree tree, Levels levels, int[] nodes, int base, int leafBase) {
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
            nodes[at + 2] = base + levels.children[q] * Forest.NODE;
            nodes[at + 3] = set == null
                    ? 0
                    : (tree.rule()[id] == Slots.CATEGORY_OR_NONE ? 1 : 0) | (tree.missingLeft()[id] ? 2 : 0);
        }
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
