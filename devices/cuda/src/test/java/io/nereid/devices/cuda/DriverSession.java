// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceMemory;
import io.nereid.device.DeviceReading;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;

/** What a test runs in a process of its own, since a process loads one driver. Prints a line for each thing it finds. */
final class DriverSession {
    private static final long MIB = 1L << 20;

    private DriverSession() {}

    public static void main(String[] arguments) throws IOException {
        try (Devices devices = new Devices(
                new CudaDriverProvider().open(),
                new DeviceLimits(2 * MIB, Map.of(0, 100 * MIB), Map.of(0, 0.5), 6, 0))) {
            System.out.println("version " + devices.driverVersion());
            for (Device device : devices.all()) {
                System.out.println(
                        device + " " + devices.state(device.ordinal()).status());
            }
            if (arguments.length > 0) {
                use(devices, Path.of(arguments[0]));
            }
        } catch (ServingException e) {
            System.out.println(e.code() + " " + e.describe());
        }
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
