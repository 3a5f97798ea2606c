// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

/**
 * One tree as read from its file. A child is the index of an inner node, or {@code ~leaf}, which is negative. Node 0 is
 * the root; a tree without nodes is the single leaf 0. Not modified after construction.
 *
 * @param feature by node, the feature of the split
 * @param threshold by node; unused where there are categories
 * @param rule by node, the rule for missing values, a constant of {@link FeatureKeys}
 * @param missingLeft by node; whether a missing category goes left
 * @param left by node, the left child
 * @param right by node, the right child
 * @param categories by node the bit set of a categorical split, null for a numeric one; null for a tree without any
 * @param values by leaf, {@code width} for each
 * @param width values per leaf
 * @param group the output that the tree adds to
 * @param linear linear models by leaf; null for a tree of constants
 * @param cover the weight of the training data at each node; null when not read, or not in the file
 */
public record ParsedTree(
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
     * @param constant the intercept
     * @param features the features of the model
     * @param coefficients one per feature
     */
    public record LinearLeaf(double constant, int[] features, double[] coefficients) {}

    /**
     * The training data that reached each node: the number of rows, or the sum of their Hessians.
     *
     * @param nodes by node
     * @param leaves by leaf
     */
    public record Cover(double[] nodes, double[] leaves) {}

    int nodes() {
        return feature.length;
    }

    int leaves() {
        return values.length / width;
    }

    /**
     * Validates that children exist and that no node or leaf has two parents, so that every walk from the root ends.
     *
     * @throws ServingException INVALID_ARGUMENT for arrays that do not form a tree
     */
    public void check(int number, int features) {
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
                    throw bad(number, "has a child " + child + " that does not exist");
                }
                boolean[] seen = inner ? nodeSeen : leafSeen;
                if (seen[at]) {
                    throw bad(number, "has two paths to one " + (inner ? "node" : "leaf"));
                }
                seen[at] = true;
            }
        }
    }

    public static ServingException bad(int number, String what) {
        return ServingException.invalidArgument("tree " + number + " " + what);
    }
}
