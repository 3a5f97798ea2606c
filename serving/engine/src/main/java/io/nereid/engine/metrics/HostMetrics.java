// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.metrics;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** CPU utilization and memory of the host, read from {@code /proc}. Thread-safe by its lock. */
public final class HostMetrics {
    /**
     * The current values; NaN where the host does not provide them.
     *
     * @param busy utilization of all processors since the previous call, 0 to 1
     * @param totalBytes total memory
     * @param usedBytes memory that is neither free nor reclaimable at once
     */
    public record Reading(double busy, double totalBytes, double usedBytes) {}

    private final Path proc;

    @GuardedBy("this") private long busyBefore;

    @GuardedBy("this") private long allBefore;

    @GuardedBy("this") private double share;

    public HostMetrics() {
        this(Path.of("/proc"));
    }

    public HostMetrics(Path proc) {
        this.proc = proc;
    }

    public synchronized Reading read() {
        double total = Double.NaN;
        double available = Double.NaN;
        try {
            for (String line : Files.readAllLines(proc.resolve("meminfo"))) {
                if (line.startsWith("MemTotal:")) {
                    total = kilobytes(line);
                } else if (line.startsWith("MemAvailable:")) {
                    available = kilobytes(line);
                }
            }
        } catch (IOException | NumberFormatException e) {
            total = Double.NaN;
        }
        return new Reading(busy(), total, total - available);
    }

    private static double kilobytes(String line) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024.0;
    }

    @GuardedBy("this") private double busy() {
        try {
            List<String> lines = Files.readAllLines(proc.resolve("stat"));
            String[] fields = lines.get(0).trim().split("\\s+");
            long all = 0;
            long idle = 0;
            // user nice system idle iowait irq softirq steal; user already contains the guest times
            for (int i = 1; i < Math.min(fields.length, 9); i++) {
                long ticks = Long.parseLong(fields[i]);
                all += ticks;
                idle += i == 4 || i == 5 ? ticks : 0;
            }
            if (all > allBefore) {
                share = (double) (all - idle - busyBefore) / (all - allBefore);
                busyBefore = all - idle;
                allBefore = all;
            }
            return Math.min(1, Math.max(0, share));
        } catch (IOException | RuntimeException e) {
            return Double.NaN;
        }
    }
}
