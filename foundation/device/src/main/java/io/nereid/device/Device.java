// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import org.jspecify.annotations.Nullable;

/**
 * A GPU, or a part of one, as the driver counts them. Immutable.
 *
 * @param ordinal its number, from 0, among the devices that {@code CUDA_VISIBLE_DEVICES} leaves visible
 * @param uuid its identity, {@code GPU-…} or {@code MIG-…}, which does not change with the order of the devices
 * @param name the name of the product
 * @param major the major number of its compute capability
 * @param minor the minor number of its compute capability
 * @param totalBytes its memory
 * @param mig which part of a GPU it is; null for a whole one
 */
public record Device(
        int ordinal,
        String uuid,
        String name,
        int major,
        int minor,
        long totalBytes,
        @Nullable MigPart mig) {
    /** Returns its compute capability, such as {@code 8.6}. */
    public String capability() {
        return major + "." + minor;
    }

    /** Whether its compute capability is at least {@code major.minor}. */
    public boolean hasCapability(int atLeastMajor, int atLeastMinor) {
        return major > atLeastMajor || (major == atLeastMajor && minor >= atLeastMinor);
    }
}
