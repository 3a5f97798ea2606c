// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

/**
 * Where memory is. Immutable.
 *
 * @param kind the kind of memory
 * @param device the ordinal of the device for {@link Kind#DEVICE}, else 0
 */
public record MemoryPlacement(Kind kind, int device) {
    /** Kinds of memory, named as Triton's {@code memory_usage} does. */
    public enum Kind {
        /** Ordinary memory of the process. */
        HOST("CPU"),
        /** Memory of the process that does not move, from which devices copy without a detour. */
        PINNED("CPU_PINNED"),
        /** The memory of a device. */
        DEVICE("GPU");

        private final String triton;

        Kind(String triton) {
            this.triton = triton;
        }

        /** The name of the kind in Triton's API. */
        public String triton() {
            return triton;
        }
    }

    public static final MemoryPlacement HOST = new MemoryPlacement(Kind.HOST, 0);
    public static final MemoryPlacement PINNED = new MemoryPlacement(Kind.PINNED, 0);

    public MemoryPlacement {
        if (device < 0 || (kind != Kind.DEVICE && device != 0)) {
            throw new IllegalArgumentException(kind + " memory has no device " + device);
        }
    }

    /** Returns the memory of the device with an ordinal. */
    public static MemoryPlacement device(int ordinal) {
        return new MemoryPlacement(Kind.DEVICE, ordinal);
    }

    /** Whether the processors can read and write it. */
    public boolean isOnHost() {
        return kind != Kind.DEVICE;
    }

    @Override
    public String toString() {
        return switch (kind) {
            case HOST -> "host";
            case PINNED -> "pinned";
            case DEVICE -> "device " + device;
        };
    }
}
