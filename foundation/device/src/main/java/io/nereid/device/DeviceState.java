// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

/**
 * Whether a device can be used. Immutable.
 *
 * @param status what it is
 * @param reason why it is not usable; empty for a usable one
 */
public record DeviceState(Status status, String reason) {
    /** What a device is. */
    public enum Status {
        /** It can be used. */
        USABLE,
        /** Its compute capability is below what the operator requires. It has metrics. */
        UNSUPPORTED,
        /** It has failed and is not used until the process ends. */
        LOST
    }

    static final DeviceState USABLE = new DeviceState(Status.USABLE, "");
}
