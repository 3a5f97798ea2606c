// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Figures of the kernel about processes; Linux only. CPU times in seconds, memory in bytes. Has no state. */
final class Proc {
    /** What the kernel counts in on every machine of today. */
    private static final double TICK = 0.01;

    private Proc() {}

    static boolean available() {
        return Files.isReadable(Path.of("/proc/self/stat"));
    }

    /** User and system time of a process; with its ended children's when {@code children}. */
    static double cpu(long pid, boolean children) {
        String stat = read("/proc/" + pid + "/stat");
        String[] f = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        long ticks = Long.parseLong(f[11]) + Long.parseLong(f[12]);
        return TICK * (children ? ticks + Long.parseLong(f[13]) + Long.parseLong(f[14]) : ticks);
    }

    /** Time that all processors have been busy, or taken away by the machine below. */
    static double busy() {
        String[] f = read("/proc/stat").lines().findFirst().orElseThrow().trim().split(" +");
        long ticks = 0;
        for (int i = 1; i <= 8; i++) {
            ticks += i == 4 || i == 5 ? 0 : Long.parseLong(f[i]);
        }
        return TICK * ticks;
    }

    static long residentBytes(long pid) {
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
