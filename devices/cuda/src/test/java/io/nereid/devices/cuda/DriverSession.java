// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceMemory;
import io.nereid.device.DeviceReading;
import io.nereid.device.DeviceTransfers;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import io.nereid.device.SharedDeviceMemory;
import io.nereid.tensor.MemoryRegion;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import org.bytedeco.cuda.cudart.cudaIpcMemHandle_t;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/** What a test runs in a process of its own, since a process loads one driver. Prints a line for each thing it finds. */
final class DriverSession {
    private static final long MIB = 1L << 20;

    private DriverSession() {}

    public static void main(String[] arguments) throws IOException {
        if (arguments.length > 0 && arguments[0].equals("own")) {
            own();
            return;
        }
        try (Devices devices = new Devices(
                new CudaDriverProvider().open(),
                new DeviceLimits(2 * MIB, Map.of(0, 100 * MIB), Map.of(0, 0.5), 6, 0))) {
            System.out.println("version " + devices.driverVersion());
            for (Device device : devices.all()) {
                System.out.println(
                        device + " " + devices.state(device.ordinal()).status());
            }
            if (arguments.length == 2) {
                open(devices, HexFormat.of().parseHex(arguments[0]), Path.of(arguments[1]));
            } else if (arguments.length > 0) {
                use(devices, Path.of(arguments[0]));
            }
        } catch (ServingException e) {
            System.out.println(e.code() + " " + e.describe());
        }
    }

    /** Shares memory of the first device until the input ends: prints its handle, and what it has then. */
    private static void own() throws IOException {
        CudaDriver driver = CudaDriver.open();
        byte[] handle = new byte[driver.handleBytes()];
        try (PointerPointer<Pointer> at = new PointerPointer<>(1);
                cudaIpcMemHandle_t memory = new cudaIpcMemHandle_t();
                LongPointer content = new LongPointer(1)) {
            int errors = cudart.cudaSetDevice(0) + cudart.cudaMalloc(at, 64);
            errors += cudart.cudaIpcGetMemHandle(memory, at.get(0));
            for (int i = 0; i < handle.length; i++) {
                handle[i] = memory.reserved(i);
            }
            System.out.println(errors + " " + HexFormat.of().formatHex(handle));
            while (System.in.read() >= 0) {
                errors++;
            }
            errors += cudart.cudaMemcpy(content, at.get(0), 8, cudart.cudaMemcpyDefault);
            System.out.println(errors + " " + Long.toHexString(content.get()));
        }
        driver.close();
    }

    /** Uses memory that another process shares. */
    private static void open(Devices devices, byte[] handle, Path faults) throws IOException {
        DeviceTransfers transfers = devices.transfers();
        SharedDeviceMemory memory = transfers.openShared(0, handle);
        SharedDeviceMemory again = transfers.openShared(0, handle);
        System.out.println("opened " + memory.bytes() + " " + again.bytes());
        MemoryRegion host = MemoryRegion.allocate(8);
        host.setInt(0, 0x9abc_def0);
        host.setInt(4, 0x1234_5678);
        memory.write(0, host, 0, 8);
        memory.release();
        host.zero();
        again.read(4, host, 2, 4);
        System.out.println("read " + Integer.toHexString(host.getInt(2)));
        System.out.println("counted " + transfers.copied(0, DeviceTransfers.Direction.TO_DEVICE) + " "
                + transfers.copied(0, DeviceTransfers.Direction.FROM_DEVICE));
        print("no handle", () -> transfers.openShared(0, new byte[64]));
        print("a short handle", () -> transfers.openShared(0, new byte[63]));
        print("another device", () -> transfers.openShared(1, handle));
        Files.writeString(faults, "0 lost\n");
        print("lost", () -> again.read(0, host, 0, 8));
        again.release();
        host.release();
    }

    private static void use(Devices devices, Path faults) throws IOException {
        MemoryPlacement first = MemoryPlacement.device(0);
        long before = reading(devices).usedBytes();
        DeviceMemory pinned = devices.allocate(MemoryPlacement.PINNED, 8);
        DeviceMemory host = devices.allocate(MemoryPlacement.HOST, 8);
        DeviceMemory on = devices.allocate(first, MIB);
        pinned.view().putLong(0, 0x1234_5678_9abc_def0L);
        DeviceMemory small = devices.allocate(first, 8);
        small.copyFrom(pinned);
        host.copyFrom(small);
        System.out.println("copied " + Long.toHexString(host.view().getLong(0)));
        ByteBuffer cleared = pinned.view().putLong(0, 0);
        pinned.copyFrom(small);
        System.out.println("back " + Long.toHexString(cleared.getLong(0)));
        System.out.println("driver counts " + (reading(devices).usedBytes() - before));
        System.out.println("account " + devices.used(first) + " " + devices.used(MemoryPlacement.PINNED));
        print("beyond the pool", () -> devices.allocate(first, 100 * MIB));
        print("beyond the pinned pool", () -> devices.allocate(MemoryPlacement.PINNED, 3 * MIB));
        print("unsupported", () -> devices.allocate(MemoryPlacement.device(1), 1));
        print("no device", () -> devices.allocate(MemoryPlacement.device(2), 1));

        Files.writeString(faults, "0 oom\n");
        print("out of memory", () -> devices.allocate(first, MIB));
        System.out.println(
                "account " + devices.used(first) + " " + devices.state(0).status());

        print("admitted", () -> devices.admit("m", 0, MIB));
        print("too large", () -> devices.admit("m", 0, 25L << 30));
        Files.writeString(faults, "0 used " + (13L << 30) + "\n");
        print("over the limit", () -> devices.admit("m", 0, 0));

        Files.writeString(faults, "0 " + (faults.toString().contains("ecc") ? "ecc" : "lost") + "\n");
        print("lost", () -> on.copyFrom(pinned));
        Files.writeString(faults, "");
        System.out.println("state " + devices.state(0));
        print("stays lost", () -> devices.allocate(first, 1));
        System.out.println("reading " + devices.read(0));
        System.out.println(
                "other " + devices.state(1).status() + " " + reading(devices, 1).totalBytes());
        on.close();
        on.close();
        small.close();
        pinned.close();
        host.close();
        System.out.println("account " + devices.used(first) + " " + devices.used(MemoryPlacement.PINNED));
    }

    private static DeviceReading reading(Devices devices) {
        return reading(devices, 0);
    }

    private static DeviceReading reading(Devices devices, int ordinal) {
        return Objects.requireNonNull(devices.read(ordinal));
    }

    private static void print(String what, Runnable action) {
        try {
            action.run();
            System.out.println(what + ": done");
        } catch (ServingException e) {
            System.out.println(what + ": " + e.code() + " " + e.getMessage());
        }
    }
}
