// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import io.nereid.backends.trees.forest.ParsedTree.LinearLeaf;
import io.nereid.base.ServingException;
import io.nereid.tensor.FloatOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Packs parsed trees into a {@link Forest}, and chooses the layout of each. Confined to one load. */
public final class ForestBuilder {
    /** Limit of the words of all category sets of a model, so that a small file cannot allocate much memory. */
    public static final int MOST_SET_WORDS = 1 << 24;

    private static final int MOST = Integer.MAX_VALUE - 64;

    private final List<ParsedTree> trees;
    private final Flavor flavor;
    private final Map<Long, Integer> slots = new HashMap<>();
    private final GrowableArrays.Ints features = new GrowableArrays.Ints();
    private final GrowableArrays.Ints rules = new GrowableArrays.Ints();
    private final Map<Integer, double[]> ranks = new HashMap<>();
    private final GrowableArrays.Ints sets = new GrowableArrays.Ints();

    /** How a value is compared with a threshold; the libraries differ. */
    public enum Flavor {
        /** XGBoost: left when the value, a float, is less. */
        LESS,
        /** LightGBM with float inputs: left when the value is less or equal. */
        LESS_OR_EQUAL,
        /** LightGBM with other inputs: left when the value, a double, is less or equal. */
        LESS_OR_EQUAL_DOUBLE
    }

    public ForestBuilder(List<ParsedTree> trees, Flavor flavor) {
        this.trees = trees;
        this.flavor = flavor;
    }

    /**
     * Builds the packed forest.
     *
     * @throws ServingException INVALID_ARGUMENT when the model has too many nodes
     */
    public Forest build() {
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
            // Leaves of the branch-free layouts read key 0 as well, so there must be one.
            slot(0, FeatureKeys.NAN_IS_ZERO);
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
                new FeatureKeys(features.toArray(), ruleOf, flavor != Flavor.LESS, ranksOf),
                packedTrees,
                evens.toArray(Forest.Even[]::new),
                packed,
                new Forest.Loose(nodes, sets.toArray(), values, width, linear));
    }

    /** Whether a tree can use one of the branch-free layouts. */
    private static boolean packs(ParsedTree tree, boolean fits) {
        return fits
                && tree.nodes() < 1 << 15
                && tree.categories() == null
                && tree.linear() == null
                && tree.width() == 1;
    }

    /** Whether a tree is shallow and full enough to be padded to a complete tree. */
    private static boolean isEven(Levels levels) {
        int depth = levels.deepest;
        return depth <= Forest.MOST_EVEN && (depth <= 4 || (2L << depth) <= 4L * levels.ids.length);
    }

    /**
     * A tree in breadth-first order, so that the upper levels, which all rows pass, share cache lines. Confined to one
     * load.
     */
    private static final class Levels {
        private final int[] ids;
        /** By position, the position of the right child; the left one follows. */
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
                // A leaf above the last level becomes a subtree of copies, so that any path below it has its value.
                ids[2 * n] = id < 0 ? id : tree.right()[id];
                ids[2 * n + 1] = id < 0 ? id : tree.left()[id];
                nodes[n] = id < 0
                        ? (long) FeatureKeys.LEAST << 32
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
            packed.nodes()[base + q] = (long) FeatureKeys.LEAST << 32;
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
                nodes[at] = FeatureKeys.LEAST;
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
                    : (tree.rule()[id] == FeatureKeys.CATEGORY_OR_NONE ? 1 : 0) | (tree.missingLeft()[id] ? 2 : 0);
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

    /** The threshold in the number space of {@link FeatureKeys}: a row goes left when its number is less. */
    private int threshold(int feature, double value) {
        switch (flavor) {
            case LESS:
                return FloatOrder.of((float) value);
            case LESS_OR_EQUAL:
                // A float is <= a double exactly when it is <= the greatest float that is not above the double.
                float below = (float) value;
                if (below > value) {
                    below = Math.nextDown(below);
                }
                return FloatOrder.of(below) + 1;
            default:
                return Arrays.binarySearch(ranks.getOrDefault(feature, new double[0]), value + 0.0) + 1;
        }
    }

    /** Collects the sorted thresholds of each feature, so that doubles can be replaced by 32-bit ranks. */
    private void rank() {
        Map<Integer, TreeSet<Double>> found = new HashMap<>();
        for (ParsedTree tree : trees) {
            for (int n = 0; n < tree.nodes(); n++) {
                // Adding 0.0 turns -0.0 into 0.0: they compare as equal, but differ in a TreeSet.
                found.computeIfAbsent(tree.feature()[n], f -> new TreeSet<>()).add(tree.threshold()[n] + 0.0);
            }
        }
        found.forEach((feature, thresholds) -> ranks.put(
                feature, thresholds.stream().mapToDouble(Double::doubleValue).toArray()));
    }
}
