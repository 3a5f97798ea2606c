// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The metrics of devices under Triton's names. The devices are read when a page is written, at most once in an interval.
 * Thread-safe by its lock; blocks for as long as the driver does.
 */
public final class DeviceMetrics {
    private static final String UUID_LABEL = "gpu_uuid";

    private final Devices devices;
    private final Clock clock;
    private final long interval;

    /** The energy of each device when the server started, which is subtracted; NaN when it is not known. */
    private final double[] energy;

    @GuardedBy("this") private final List<@Nullable DeviceReading> readings;

    @GuardedBy("this") private long readAt;

    /** Reads all devices once. */
    public DeviceMetrics(Devices devices, Clock clock, Duration interval) {
        this.devices = devices;
        this.clock = clock;
        this.interval = interval.toNanos();
        this.energy = new double[devices.all().size()];
        this.readings = new ArrayList<>();
        for (Device device : devices.all()) {
            DeviceReading first = devices.read(device.ordinal());
            energy[device.ordinal()] = first == null ? Double.NaN : first.energyJoules();
            readings.add(first);
        }
        this.readAt = clock.nanos();
    }

    /** Writes the figures of all devices that answer, and of pinned memory. A figure that a device lacks is left out. */
    public synchronized void write(MetricsWriter page) {
        long now = clock.nanos();
        if (now - readAt >= interval) {
            readings.replaceAll(before -> null);
            devices.all().forEach(device -> readings.set(device.ordinal(), devices.read(device.ordinal())));
            readAt = now;
        }
        family(page, "nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", DeviceReading::utilization);
        family(page, "nv_gpu_memory_total_bytes", "GPU total memory, in bytes", r -> known(r.totalBytes()));
        family(page, "nv_gpu_memory_used_bytes", "GPU used memory, in bytes", r -> known(r.usedBytes()));
        family(page, "nv_gpu_power_usage", "GPU power usage in watts", DeviceReading::powerWatts);
        family(page, "nv_gpu_power_limit", "GPU power management limit in watts", DeviceReading::powerLimitWatts);
        begin(
                page,
                "nv_energy_consumption",
                MetricType.COUNTER,
                "GPU energy consumption in joules since the server" + " started");
        for (Device device : devices.all()) {
            DeviceReading reading = readings.get(device.ordinal());
            if (reading != null) {
                sample(page, device, reading.energyJoules() - energy[device.ordinal()]);
            }
        }
        begin(
                page,
                "nv_pinned_memory_pool_total_bytes",
                MetricType.GAUGE,
                "Pinned memory pool total memory size, in" + " bytes");
        page.sample(LabelSet.NONE, devices.capacity(MemoryPlacement.PINNED));
        begin(
                page,
                "nv_pinned_memory_pool_used_bytes",
                MetricType.GAUGE,
                "Pinned memory pool used memory size, in" + " bytes");
        page.sample(LabelSet.NONE, devices.used(MemoryPlacement.PINNED));
        copies(page, "nereid_gpu_copies_total", "Copies between the host and a GPU", DeviceTransfers.Copied::copies);
        copies(
                page,
                "nereid_gpu_copied_bytes_total",
                "Bytes copied between the host and a GPU",
                DeviceTransfers.Copied::bytes);
    }

    private void copies(MetricsWriter page, String name, String help, ToLongFunction<DeviceTransfers.Copied> figure) {
        begin(page, name, MetricType.COUNTER, help);
        for (Device device : devices.all()) {
            for (DeviceTransfers.Direction direction : DeviceTransfers.Direction.values()) {
                page.sample(
                        LabelSet.of(UUID_LABEL, device.uuid())
                                .with("direction", direction.name().toLowerCase(Locale.ROOT)),
                        figure.applyAsLong(devices.transfers().copied(device.ordinal(), direction)));
            }
        }
    }

    private static double known(long bytes) {
        return bytes < 0 ? Double.NaN : bytes;
    }

    private static void begin(MetricsWriter page, String name, MetricType type, String help) {
        page.family(name, type, help);
    }

    @GuardedBy("this") private void family(MetricsWriter page, String name, String help, ToDoubleFunction<DeviceReading> figure) {
        begin(page, name, MetricType.GAUGE, help);
        for (Device device : devices.all()) {
            DeviceReading reading = readings.get(device.ordinal());
            if (reading != null) {
                sample(page, device, figure.applyAsDouble(reading));
            }
        }
    }

    private static void sample(MetricsWriter page, Device device, double value) {
        if (!Double.isNaN(value)) {
            page.sample(LabelSet.of(UUID_LABEL, device.uuid()), value);
        }
    }
}
