// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AvailableMemoryTest {
    private static final long MIB = 1 << 20;

    @TempDir
    Path root;

    private void file(String name, String text) throws IOException {
        Path file = root.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    @Test
    void whatTheKernelSaysIsAvailable() throws IOException {
        file("proc/meminfo", "MemTotal:       2048 kB\nMemFree:         100 kB\nMemAvailable:    1024 kB\n");
        assertThat(AvailableMemory.bytes(root)).isEqualTo(MIB);
    }

    @Test
    void aSystemThatDoesNotSayHasNoBound() {
        assertThat(AvailableMemory.bytes(root)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void theLimitOfAContainerCounts() throws IOException {
        file("proc/meminfo", "MemAvailable:    10240 kB\n");
        file("proc/self/cgroup", "0::/kubepods/pod7\n");
        file("sys/fs/cgroup/memory.max", 4 * MIB + "\n");
        file("sys/fs/cgroup/memory.current", 3 * MIB + "\n");
        file("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file " + MIB + "\n");
        assertThat(AvailableMemory.bytes(root)).isEqualTo(2 * MIB);
    }

    @Test
    void theSmallestOfTheGroupsAroundCounts() throws IOException {
        file("proc/meminfo", "MemAvailable:    10240 kB\n");
        file("proc/self/cgroup", "0::/system.slice/nereid.service\n");
        file("sys/fs/cgroup/system.slice/nereid.service/memory.max", "max\n");
        file("sys/fs/cgroup/system.slice/nereid.service/memory.current", "1\n");
        file("sys/fs/cgroup/system.slice/memory.max", 2 * MIB + "\n");
        file("sys/fs/cgroup/system.slice/memory.current", MIB + "\n");
        assertThat(AvailableMemory.bytes(root)).isEqualTo(MIB);
    }

    @Test
    void theFirstVersionOfControlGroupsCounts() throws IOException {
        file("proc/meminfo", "MemAvailable:    10240 kB\n");
        file("proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/docker/abc\n");
        file("sys/fs/cgroup/memory/memory.limit_in_bytes", 3 * MIB + "\n");
        file("sys/fs/cgroup/memory/memory.usage_in_bytes", 4 * MIB + "\n");
        assertThat(AvailableMemory.bytes(root)).isZero();
    }

    @Test
    void thisMachineHasSomeMemory() {
        assertThat(AvailableMemory.bytes()).isPositive();
    }
}
