// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The devices of this process: their states, the account of their memory, and the admission of loads. A device that
 * fails becomes lost: calls that need it throw UNAVAILABLE, and the other devices are not affected. Thread-safe; calls
 * of the driver are made without the lock.
 */
public final class Devices implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Devices.class);

    private final DeviceDriver driver;
    private final DeviceLimits limits;
    private final List<Device> all;
    private final DeviceTransfers transfers;

    @GuardedBy("this") private final List<DeviceState> states = new ArrayList<>();

    @GuardedBy("this") private final Map<MemoryPlacement, Long> used = new HashMap<>();

    /**
     * Takes over a driver, which {@link #close} closes.
     *
     * @param limits limits for ordinals that there are not have no effect
     */
    public Devices(DeviceDriver driver, DeviceLimits limits) {
        this.driver = driver;
        this.limits = limits;
        this.all = List.copyOf(driver.devices());
        this.transfers = new DeviceTransfers(this, driver);
        for (Device device : all) {
            states.add(
                    device.hasCapability(limits.major(), limits.minor())
                            ? DeviceState.USABLE
                            : new DeviceState(
                                    DeviceState.Status.UNSUPPORTED,
                                    "its compute capability is " + device.capability() + ", below " + limits.major()
                                            + "." + limits.minor()));
        }
    }

    /** All devices by ordinal, whatever their states are. */
    public List<Device> all() {
        return all;
    }

    public DeviceLimits limits() {
        return limits;
    }

    /** The copies between the host and the devices, and memory that other processes share. */
    public DeviceTransfers transfers() {
        return transfers;
    }

    /** The versions of the driver in words. */
    public String driverVersion() {
        return driver.version();
    }

    /**
     * Returns the state of a device.
     *
     * @throws ServingException INVALID_ARGUMENT for an ordinal that there is not
     */
    public synchronized DeviceState state(int ordinal) {
        return states.get(device(ordinal).ordinal());
    }

    /**
     * Returns why a device cannot be used now: UNAVAILABLE when it is lost, FAILED_PRECONDITION when it is not supported;
     * null when it can.
     *
     * @throws ServingException INVALID_ARGUMENT for an ordinal that there is not
     */
    public @Nullable ServingException refusal(int ordinal) {
        DeviceState state = state(ordinal);
        return state.status() == DeviceState.Status.USABLE ? null : unusable(ordinal, state);
    }

    /** Returns the bytes in use by {@link #allocate} in one place. */
    public synchronized long used(MemoryPlacement placement) {
        return used.getOrDefault(placement, 0L);
    }

    /** Returns the bytes that {@link #allocate} gives in one place altogether; {@code Long.MAX_VALUE} without a limit. */
    public long capacity(MemoryPlacement placement) {
        return switch (placement.kind()) {
            case HOST -> Long.MAX_VALUE;
            case PINNED -> limits.pinnedBytes();
            case DEVICE -> limits.poolBytes(placement.device());
        };
    }

    /**
     * Allocates memory within the limits. Its content is not defined. The caller closes it.
     *
     * @param bytes at least 1
     * @throws ServingException RESOURCE_EXHAUSTED beyond the limit, or when the device has no more memory; UNAVAILABLE
     *     when the device is lost; FAILED_PRECONDITION when it is not supported; INVALID_ARGUMENT for a device that there
     *     is not, or fewer bytes than 1
     */
    public DeviceMemory allocate(MemoryPlacement placement, long bytes) {
        if (bytes < 1) {
            throw ServingException.invalidArgument(
                    "cannot allocate " + bytes + " bytes of " + placement + " memory (expected: at least 1)");
        }
        require(placement);
        reserve(placement, bytes);
        boolean done = false;
        try {
            long address = driver.allocate(placement, bytes);
            done = true;
            return new DeviceMemory(this, placement, address, bytes);
        } catch (DeviceFault e) {
            throw failed(e, "cannot allocate " + Units.formatBytes(bytes) + " of " + placement + " memory", placement);
        } finally {
            if (!done) {
                release(placement, bytes);
            }
        }
    }

    private synchronized void reserve(MemoryPlacement placement, long bytes) {
        long capacity = capacity(placement);
        long before = used.getOrDefault(placement, 0L);
        if (bytes > capacity - before) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "cannot allocate " + Units.formatBytes(bytes) + " of " + placement + " memory: "
                            + Units.formatBytes(capacity - before) + " of " + Units.formatBytes(capacity)
                            + " are free",
                    placement.kind() == MemoryPlacement.Kind.PINNED
                            ? "raise --pinned-memory-pool-byte-size"
                            : "raise --cuda-memory-pool-byte-size " + placement.device() + ":BYTES");
        }
        used.put(placement, before + bytes);
    }

    private synchronized void release(MemoryPlacement placement, long bytes) {
        used.merge(placement, -bytes, Long::sum);
    }

    void free(MemoryPlacement placement, long address, long bytes) {
        release(placement, bytes);
        try {
            driver.free(placement, address);
        } catch (DeviceFault e) {
            // The memory is gone with its device; who closes it cannot do anything about that.
            note(e, placement);
            LOG.debug("memory of {} is not freed: {}", placement, e.getMessage());
        }
    }

    ByteBuffer view(long address, int bytes) {
        return driver.view(address, bytes);
    }

    void copy(DeviceMemory to, DeviceMemory from) {
        transfers.copy(to.placement(), to.address(), from.placement(), from.address(), from.bytes());
    }

    /**
     * Returns the present figures of a device, or null when it does not answer; it is lost then, or has been before.
     *
     * @throws ServingException INVALID_ARGUMENT for an ordinal that there is not
     */
    public @Nullable DeviceReading read(int ordinal) {
        Device device = device(ordinal);
        if (state(ordinal).status() == DeviceState.Status.LOST) {
            return null;
        }
        try {
            return driver.read(device);
        } catch (DeviceFault e) {
            note(e, MemoryPlacement.device(ordinal));
            return null;
        }
    }

    /**
     * Decides whether a model may be loaded on a device, as Triton does: the used share of its memory must not be above
     * {@code --model-load-gpu-limit}. Where the estimate of the model is known, it must fit as well.
     *
     * @param model the name of the model
     * @param bytes the memory that the model will take; 0 when it is not known
     * @throws ServingException UNAVAILABLE with figures beyond the limit, or when the device is lost;
     *     RESOURCE_EXHAUSTED with figures when the model does not fit into what is free; FAILED_PRECONDITION when the
     *     device is not supported; INVALID_ARGUMENT for an ordinal that there is not
     */
    public void admit(String model, int ordinal, long bytes) {
        require(MemoryPlacement.device(ordinal));
        DeviceReading now = read(ordinal);
        require(MemoryPlacement.device(ordinal));
        if (now == null || now.freeBytes() < 0) {
            return;
        }
        double fraction = limits.loadFraction(ordinal);
        long allowed = (long) (now.totalBytes() * fraction);
        if (now.usedBytes() > allowed) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "can not create model '" + model + "': memory limit set for KIND_GPU " + ordinal
                            + " has exceeded, model loading is rejected: " + Units.formatBytes(now.usedBytes())
                            + " of " + Units.formatBytes(now.totalBytes()) + " are used, and the limit is "
                            + Units.formatBytes(allowed),
                    "unload another model, or raise --model-load-gpu-limit " + ordinal + ":"
                            + String.format(Locale.ROOT, "%.2f", fraction));
        }
        if (bytes > now.freeBytes()) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "model '" + model + "' does not fit into the memory of device " + ordinal + ": it needs "
                            + Units.formatBytes(bytes) + ", and " + Units.formatBytes(now.freeBytes()) + " of "
                            + Units.formatBytes(now.totalBytes()) + " are free",
                    "unload another model, or use a device with more memory");
        }
    }

    private Device device(int ordinal) {
        if (ordinal < 0 || ordinal >= all.size()) {
            throw ServingException.invalidArgument(
                    "there is no device " + ordinal,
                    "there is "
                            + all.stream().map(d -> String.valueOf(d.ordinal())).collect(Collectors.joining(", ")));
        }
        return all.get(ordinal);
    }

    void require(MemoryPlacement placement) {
        if (placement.isOnHost()) {
            return;
        }
        ServingException refusal = refusal(placement.device());
        if (refusal != null) {
            throw refusal;
        }
    }

    private static ServingException unusable(int ordinal, DeviceState state) {
        return state.status() == DeviceState.Status.LOST
                ? ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "device " + ordinal + " is lost: " + state.reason(),
                        "repair or reset the device, and restart the server")
                : ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "device " + ordinal + " is not used: " + state.reason(),
                        "use another device, or lower --min-supported-compute-capability");
    }

    /** Marks the device of a fault as lost if the fault means that. */
    void note(DeviceFault fault, MemoryPlacement placement) {
        boolean lost = fault.kind() == DeviceFault.Kind.LOST || fault.kind() == DeviceFault.Kind.ECC;
        if (!lost || placement.isOnHost()) {
            return;
        }
        int ordinal = placement.device();
        String reason = fault.kind() == DeviceFault.Kind.ECC
                ? "its memory has an uncorrectable error: " + fault.getMessage()
                : String.valueOf(fault.getMessage());
        synchronized (this) {
            if (states.get(ordinal).status() == DeviceState.Status.LOST) {
                return;
            }
            states.set(ordinal, new DeviceState(DeviceState.Status.LOST, reason));
        }
        LOG.error("device {} ({}) is lost: {}", ordinal, all.get(ordinal).uuid(), reason);
    }

    ServingException failed(DeviceFault fault, String what, MemoryPlacement placement) {
        note(fault, placement);
        if (!placement.isOnHost()) {
            DeviceState state = state(placement.device());
            if (state.status() == DeviceState.Status.LOST) {
                return unusable(placement.device(), state);
            }
        }
        return fault.kind() == DeviceFault.Kind.OUT_OF_MEMORY
                ? ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        what + ": " + fault.getMessage(),
                        "unload a model, or end the other processes that use the memory")
                : ServingException.of(ErrorCode.INTERNAL, what + ": " + fault.getMessage());
    }

    @Override
    public void close() {
        transfers.end();
        driver.close();
    }
}
