// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.device;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.local.spi.LocalGpu;
import io.nereid.device.Device;
import io.nereid.device.DeviceDriver;
import io.nereid.device.DeviceDriverProvider;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceMetrics;
import io.nereid.device.DeviceReading;
import io.nereid.device.DeviceState;
import io.nereid.device.Devices;
import io.nereid.device.MigPart;
import io.nereid.observe.metrics.MetricsWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The GPUs of a server and their metrics. Made on a machine with a GPU and its plugin only. Thread-safe. */
public final class ServerDevices implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ServerDevices.class);

    /** The file that the kernel's module of NVIDIA has. */
    private static final Path KERNEL_MODULE = Path.of("/proc/driver/nvidia/version");

    private final Devices devices;
    private final @Nullable DeviceMetrics metrics;

    private ServerDevices(Devices devices, @Nullable DeviceMetrics metrics) {
        this.devices = devices;
        this.metrics = metrics;
    }

    /**
     * Finds the GPUs, and logs what was found or why not. A driver that does not work is logged, and the server runs
     * without GPUs. Blocks.
     *
     * @param providers the drivers of the plugins, of which the first that works is used
     * @return null when no GPU is used
     */
    public static @Nullable ServerDevices open(List<DeviceDriverProvider> providers, DeviceFlags flags, Clock clock) {
        String why = "there is no plugin for GPUs";
        if (providers.isEmpty() && Files.exists(KERNEL_MODULE)) {
            LOG.info("the machine has NVIDIA's driver, and no plugin that uses it; nereid plugins install cuda");
        }
        for (DeviceDriverProvider provider : providers) {
            try {
                return start(provider.open(), flags, clock);
            } catch (ServingException e) {
                why = e.describe();
            } catch (LinkageError e) {
                why = "the plugin does not run on this machine: " + e;
            }
            LOG.warn("no GPU is used: {}: {}", provider.name(), why);
        }
        for (String option : flags.given()) {
            LOG.warn("{} has no effect: no GPU is used: {}", option, why);
        }
        return null;
    }

    private static ServerDevices start(DeviceDriver driver, DeviceFlags flags, Clock clock) {
        DeviceLimits limits = flags.limits();
        Devices devices = new Devices(driver, limits);
        String visible = System.getenv("CUDA_VISIBLE_DEVICES");
        LOG.info(
                "GPUs: {}, {}{}",
                devices.all().size(),
                devices.driverVersion(),
                visible == null ? "" : "; CUDA_VISIBLE_DEVICES is '" + visible + "'");
        for (Device device : devices.all()) {
            LOG.info("GPU {}: {}", device.ordinal(), described(devices, device));
        }
        Set<Integer> named = new LinkedHashSet<>(limits.poolBytes().keySet());
        named.addAll(limits.loadFractions().keySet());
        for (int ordinal : named) {
            if (ordinal >= devices.all().size()) {
                LOG.warn(
                        "limits for GPU {} have no effect: there are {} GPUs",
                        ordinal,
                        devices.all().size());
            }
        }
        return new ServerDevices(
                devices, flags.exportsMetrics() ? new DeviceMetrics(devices, clock, flags.interval()) : null);
    }

    private static String described(Devices devices, Device device) {
        DeviceReading now = devices.read(device.ordinal());
        DeviceState state = devices.state(device.ordinal());
        MigPart mig = device.mig();
        return device.name() + ", " + device.uuid()
                + (mig == null
                        ? ""
                        : ", part " + mig.gpuInstance() + "/" + mig.computeInstance() + " of " + mig.parentUuid())
                + ", compute capability " + device.capability() + ", " + Units.formatBytes(device.totalBytes())
                + (now == null || now.freeBytes() < 0 ? "" : ", " + Units.formatBytes(now.freeBytes()) + " free")
                + (state.status() == DeviceState.Status.USABLE ? "" : "; not used: " + state.reason());
    }

    /** The GPUs whose memory clients may share; null when the server uses none of them, or they do not share memory. */
    public @Nullable Devices shareable() {
        boolean usable = devices.all().stream()
                .anyMatch(device -> devices.state(device.ordinal()).status() == DeviceState.Status.USABLE);
        return usable && devices.transfers().handleBytes() > 0 ? devices : null;
    }

    /** The GPUs that services may have: those that can be used now. */
    public List<LocalGpu> forServices() {
        return devices.all().stream()
                .filter(device -> devices.state(device.ordinal()).status() == DeviceState.Status.USABLE)
                .map(device -> new LocalGpu(device.ordinal(), device.uuid(), device.name()))
                .toList();
    }

    /** The GPUs, with the account of their memory. */
    public Devices devices() {
        return devices;
    }

    /** Writes the metrics of GPUs, unless the operator has switched them off. May block. */
    public void writeMetrics(MetricsWriter page) {
        if (metrics != null) {
            metrics.write(page);
        }
    }

    @Override
    public void close() {
        devices.close();
    }
}
