// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads process statistics from /proc; Linux only. CPU times are in seconds, memory in bytes. Stateless. */
public final class ProcessStatistics {
    /** Seconds per clock tick (USER_HZ): 100 per second on all current Linux platforms. */
    private static final double TICK = 0.01;

    private ProcessStatistics() {}

    public static boolean available() {
        return Files.isReadable(Path.of("/proc/self/stat"));
    }

    /** Returns user and system time of a process, optionally with that of its ended children. */
    public static double cpu(long pid, boolean children) {
        String stat = read("/proc/" + pid + "/stat");
        String[] f = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        long ticks = Long.parseLong(f[11]) + Long.parseLong(f[12]);
        return TICK * (children ? ticks + Long.parseLong(f[13]) + Long.parseLong(f[14]) : ticks);
    }

    /** Returns the busy time of all CPUs, including time stolen by the hypervisor. */
    public static double busy() {
        String[] f = read("/proc/stat").lines().findFirst().orElseThrow().trim().split(" +");
        long ticks = 0;
        for (int i = 1; i <= 8; i++) {
            ticks += i == 4 || i == 5 ? 0 : Long.parseLong(f[i]);
        }
        return TICK * ticks;
    }

    public static long residentBytes(long pid) {
        return read("/proc/" + pid + "/status")
                .lines()
                .filter(l -> l.startsWith("VmRSS:"))
                .mapToLong(l -> Long.parseLong(l.replaceAll("[^0-9]", "")) << 10)
                .findFirst()
                .orElse(0);
    }

    static String[] commandLine(long pid) {
        return read("/proc/" + pid + "/cmdline").split("\0");
    }

    private static String read(String file) {
        try {
            return Files.readString(Path.of(file), java.nio.charset.StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
