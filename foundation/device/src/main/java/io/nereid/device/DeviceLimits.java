// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import java.util.Map;

/**
 * The limits of device memory that an operator sets, with Triton's defaults. Immutable.
 *
 * @param pinnedBytes the pinned memory of the process; 0 for none
 * @param poolBytes the memory of each device that the server itself may take, by ordinal
 * @param loadFractions by ordinal, the used share of a device's memory beyond which no model is loaded, 0 to 1
 * @param major the major number of the compute capability that devices must have
 * @param minor the minor number of it
 */
public record DeviceLimits(
        long pinnedBytes, Map<Integer, Long> poolBytes, Map<Integer, Double> loadFractions, int major, int minor) {
    /** The pinned memory without an option: 256 MiB. */
    public static final long PINNED_BYTES = 256L << 20;

    /** The memory of a device for the server without an option: 64 MiB. */
    public static final long POOL_BYTES = 64L << 20;

    /** The limits without options; the compute capability is 6.0. */
    public static final DeviceLimits DEFAULT = new DeviceLimits(PINNED_BYTES, Map.of(), Map.of(), 6, 0);

    public DeviceLimits {
        poolBytes = Map.copyOf(poolBytes);
        loadFractions = Map.copyOf(loadFractions);
    }

    /** Returns the bytes of a device that the server itself may take. */
    public long poolBytes(int ordinal) {
        return poolBytes.getOrDefault(ordinal, POOL_BYTES);
    }

    /** Returns the used share of a device's memory beyond which no model is loaded; 1 without a limit. */
    public double loadFraction(int ordinal) {
        return loadFractions.getOrDefault(ordinal, 1.0);
    }
}
