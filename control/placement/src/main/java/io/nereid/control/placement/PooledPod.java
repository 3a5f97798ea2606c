// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import io.nereid.base.ServingException;

/**
 * A pod of a pool. Immutable.
 *
 * @param name its name, unique in the pool
 * @param memoryBytes the bytes that models may use on it: less than the limit of its container
 * @param workers how many requests it can compute at once; loads are compared in shares of it
 * @param loadSlots how many models it loads at once
 */
public record PooledPod(String name, long memoryBytes, int workers, int loadSlots) {
    /**
     * Creates a pod.
     *
     * @throws ServingException INVALID_ARGUMENT for an empty name or a number that is not positive
     */
    public PooledPod {
        if (name.isEmpty() || memoryBytes <= 0 || workers <= 0 || loadSlots <= 0) {
            throw ServingException.invalidArgument(
                    "pod '" + name + "' has " + memoryBytes + " bytes, " + workers + " workers and " + loadSlots
                            + " load slots (expected a name and positive numbers)",
                    "set the memory limit of the pod's container");
        }
    }
}
