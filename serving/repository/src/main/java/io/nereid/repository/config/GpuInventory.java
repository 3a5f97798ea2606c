// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.device.Device;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceState;
import io.nereid.device.Devices;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The GPUs that configurations are checked against: those of the server, assumed ones, or none. Immutable: a GPU that is
 * lost later is still part of it.
 */
public final class GpuInventory {
    /** A server without GPUs. */
    public static final GpuInventory NONE = new GpuInventory(false, true, List.of(), "");

    /** Whatever GPUs there are: the kinds and ordinals of a configuration are checked when the model is loaded. */
    public static final GpuInventory UNCHECKED = new GpuInventory(true, false, List.of(), "");

    /** The compute capability of assumed GPUs: 8.0. */
    private static final int ASSUMED_MAJOR = 8;

    private final boolean supported;
    private final boolean checked;
    private final List<Device> usable;
    private final String minimum;

    private GpuInventory(boolean supported, boolean checked, List<Device> usable, String minimum) {
        this.supported = supported;
        this.checked = checked;
        this.usable = List.copyOf(usable);
        this.minimum = minimum;
    }

    /** The GPUs of a server that are neither lost nor below its minimum of compute capability; null for none. */
    public static GpuInventory of(@Nullable Devices devices) {
        if (devices == null) {
            return NONE;
        }
        List<Device> usable = devices.all().stream()
                .filter(d -> devices.state(d.ordinal()).status() == DeviceState.Status.USABLE)
                .toList();
        DeviceLimits limits = devices.limits();
        return new GpuInventory(true, true, usable, limits.major() + "." + limits.minor());
    }

    /** As {@link #assumed(int, int, int)}, of compute capability 8.0. */
    public static GpuInventory assumed(int count) {
        return assumed(count, ASSUMED_MAJOR, 0);
    }

    /**
     * GPUs that are not there, for the check of configurations that another machine will serve.
     *
     * @param count how many
     * @param major the major number of their compute capability
     * @param minor the minor number of it
     */
    public static GpuInventory assumed(int count, int major, int minor) {
        List<Device> devices = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            devices.add(new Device(i, "GPU-assumed-" + i, "assumed GPU", major, minor, 0, null));
        }
        DeviceLimits limits = DeviceLimits.DEFAULT;
        return new GpuInventory(
                true,
                true,
                devices.stream()
                        .filter(d -> d.hasCapability(limits.major(), limits.minor()))
                        .toList(),
                limits.major() + "." + limits.minor());
    }

    /** Whether the server can use GPUs at all. */
    boolean supported() {
        return supported;
    }

    /** Whether {@link #usable} is known. */
    boolean checked() {
        return checked;
    }

    /** The GPUs that models may run on, by ordinal. */
    List<Device> usable() {
        return usable;
    }

    /** The GPU with an ordinal; null if there is none that models may run on. */
    @Nullable Device find(int ordinal) {
        return usable.stream().filter(d -> d.ordinal() == ordinal).findFirst().orElse(null);
    }

    /** What is wrong about an ordinal, in Triton's words; continues "instance group G of model M". */
    String invalid(int ordinal) {
        return "specifies invalid or unsupported gpu id " + ordinal
                + ". GPUs with at least the minimum required CUDA compute compatibility of " + minimum + " are: "
                + (usable.isEmpty()
                        ? "none"
                        : usable.stream().map(d -> String.valueOf(d.ordinal())).collect(Collectors.joining(" ")));
    }
}
