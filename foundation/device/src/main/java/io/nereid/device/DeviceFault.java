// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

/**
 * What a driver reports instead of a result. {@link Devices} turns it into a state of the device and a
 * {@link io.nereid.base.ServingException}.
 */
public final class DeviceFault extends Exception {
    private static final long serialVersionUID = 1L;

    /** What a fault means for the device. */
    public enum Kind {
        /** There is not enough memory now; the device is usable. */
        OUT_OF_MEMORY,
        /** The device is gone, or its context is unusable, for the rest of the process. */
        LOST,
        /** The memory of the device has an error that its ECC cannot correct; the device is not used any more. */
        ECC,
        /** Any other failure of one call; the device is usable. */
        OTHER
    }

    private final Kind kind;

    /**
     * @param kind what it means
     * @param message the call, and the name, number and description of the driver's error
     */
    public DeviceFault(Kind kind, String message) {
        super(message, null, false, false);
        this.kind = kind;
    }

    public Kind kind() {
        return kind;
    }
}
