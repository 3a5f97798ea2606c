// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

/**
 * What a device reports of itself at one time. A figure that the device does not have is NaN or -1. Immutable.
 *
 * @param totalBytes its memory; -1 when unknown
 * @param usedBytes the memory that all processes use, and the driver's own; -1 when unknown
 * @param utilization the share of time in which a kernel ran, 0 to 1; NaN when unknown
 * @param powerWatts the power that it takes; NaN when unknown
 * @param powerLimitWatts the limit that its power is kept to; NaN when unknown
 * @param energyJoules the energy since the driver was loaded; NaN when unknown
 */
public record DeviceReading(
        long totalBytes,
        long usedBytes,
        double utilization,
        double powerWatts,
        double powerLimitWatts,
        double energyJoules) {
    /** Returns the memory that can be allocated; -1 when unknown. */
    public long freeBytes() {
        return totalBytes < 0 || usedBytes < 0 ? -1 : totalBytes - usedBytes;
    }
}
