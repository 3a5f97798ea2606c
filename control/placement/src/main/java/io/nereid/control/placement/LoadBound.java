// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

/**
 * The bound of consistent hashing with bounded loads: a pod takes another model while its load stays below (1 + excess)
 * times the load that its weight entitles it to. Immutable.
 *
 * @param excess epsilon of the algorithm, more than 0: smaller is more even, and moves more
 */
public record LoadBound(double excess) {
    /**
     * The load that a pod may have.
     *
     * @param total the load of all pods, the new one included
     * @param weight the weight of the pod
     * @param totalWeight the weights of all pods
     * @param floor a load below which imbalance does no harm; it is permitted in any case
     */
    public double limit(double total, double weight, double totalWeight, double floor) {
        return Math.max(floor, (1 + excess) * total * weight / totalWeight);
    }
}
