// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

/**
 * One tree as its file has it. A child is an inner node, or {@code ~leaf} below zero; node 0 is the root, and a tree
 * without nodes is leaf 0. Read only once it is made.
 *
 * @param feature by node
 * @param threshold by node; unused where there are categories
 * @param rule by node, one of {@link Slots}'s
 * @param missingLeft by node; whether a missing category goes left
 * @param left by node
 * @param right by node
 * @param categories by node a set of bits, null for a node that compares; null for a tree that only compares
 * @param values by leaf, {@code width} for each
 * @param width outputs that each leaf adds to
 * @param group the output that the tree adds to
 * @param linear what leaves add besides, by leaf; null for a tree of constants
 * @param cover how much of the training data came by; null when it was not read, or is not in the file
 */
record ParsedTree(
        int[] feature,
        double[] threshold,
        byte[] rule,
        boolean[] missingLeft,
        int[] left,
        int[] right,
        int @Nullable [] @Nullable [] categories,
        double[] values,
        int width,
        int group,
        LinearLeaf @Nullable [] linear,
        @Nullable Cover cover) {
    /**
     * A leaf with a linear model of its own, which falls back to the leaf's value when a feature is missing.
     *
     * @param constant added first
     * @param features of the model
     * @param coefficients as many
     */
    record LinearLeaf(double constant, int[] features, double[] coefficients) {}

    /**
     * How much of the training data came by: rows, or what the library weighs them with.
     *
     * @param nodes by node
     * @param leaves by leaf
     */
    record Cover(double[] nodes, double[] leaves) {}

    int nodes() {
        return feature.length;
    }

    int leaves() {
        return values.length / width;
    }

    /** @throws ServingException INVALID_ARGUMENT when it is no tree */
    void check(int number, int features) {
        int leaves = leaves();
        if (leaves == 0 || values.length % width != 0) {
            throw bad(number, "has " + values.length + " leaf values");
        }
        boolean[] nodeSeen = new boolean[nodes()];
        boolean[] leafSeen = new boolean[leaves];
        for (int n = 0; n < nodes(); n++) {
            if (feature[n] < 0 || feature[n] >= features) {
                throw bad(number, "splits on feature " + feature[n] + " of " + features);
            }
            if (Double.isNaN(threshold[n])) {
                throw bad(number, "has a threshold that is not a number");
            }
            for (int child : new int[] {left[n], right[n]}) {
                boolean inner = child >= 0;
                int at = inner ? child : ~child;
                if (at >= (inner ? nodes() : leaves) || (inner && at == 0)) {
                    throw bad(number, "has a child " + child + " that it lacks");
                }
                boolean[] seen = inner ? nodeSeen : leafSeen;
                if (seen[at]) {
                    throw bad(number, "has two ways to one " + (inner ? "node" : "leaf"));
                }
                seen[at] = true;
            }
        }
    }

    static ServingException bad(int number, String what) {
        return ServingException.invalidArgument("tree " + number + " " + what);
    }
}
