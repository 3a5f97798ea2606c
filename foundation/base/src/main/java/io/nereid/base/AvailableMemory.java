// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * How much memory this process can take before the machine, or the container that it runs in, is short of it: the smallest of
 * what the kernel says is available ({@code MemAvailable} of {@code /proc/meminfo}) and what the limits of its control groups
 * leave. Files in the page cache count as available. Stateless.
 */
public final class AvailableMemory {
    private static final Path ROOT = Path.of("/");

    private AvailableMemory() {}

    /**
     * The available memory in bytes; {@link Long#MAX_VALUE} where the system does not say.
     *
     * <pre>{@code
     * if (AvailableMemory.bytes() > 2 * size) {
     *     openAnotherCopy();
     * }
     * }</pre>
     */
    public static long bytes() {
        return bytes(ROOT);
    }

    /**
     * As {@link #bytes()}, of another root directory.
     *
     * @param root the directory with {@code proc} and {@code sys}
     */
    static long bytes(Path root) {
        long bytes = machine(root);
        String groups = read(root.resolve("proc/self/cgroup"));
        for (String line : groups == null ? new String[0] : groups.split("\n")) {
            String[] fields = line.split(":", 3);
            if (fields.length == 3 && fields[1].isEmpty()) {
                bytes = Math.min(
                        bytes,
                        group(
                                root.resolve("sys/fs/cgroup"),
                                fields[2],
                                "memory.max",
                                "memory.current",
                                "inactive_file "));
            } else if (fields.length == 3 && fields[1].equals("memory")) {
                bytes = Math.min(
                        bytes,
                        group(
                                root.resolve("sys/fs/cgroup/memory"),
                                fields[2],
                                "memory.limit_in_bytes",
                                "memory.usage_in_bytes",
                                "total_inactive_file "));
            }
        }
        return bytes;
    }

    private static long machine(Path root) {
        String text = read(root.resolve("proc/meminfo"));
        long kilobytes = value(text, "MemAvailable:");
        return kilobytes < 0 ? Long.MAX_VALUE : kilobytes << 10;
    }

    /**
     * What a control group and those around it leave. In a container the hierarchy begins at the container's own group, so that a
     * path that does not exist there is that of the host, and the root is the group.
     */
    private static long group(Path hierarchy, String path, String limitFile, String usageFile, String inactive) {
        long bytes = Long.MAX_VALUE;
        Path group = hierarchy.resolve("." + path).normalize();
        if (!group.startsWith(hierarchy) || !Files.isDirectory(group)) {
            group = hierarchy;
        }
        for (Path each = group; each != null && each.startsWith(hierarchy); each = each.getParent()) {
            long limit = number(read(each.resolve(limitFile)));
            long usage = number(read(each.resolve(usageFile)));
            if (limit >= 0 && usage >= 0) {
                long files = Math.max(0, value(read(each.resolve("memory.stat")), inactive));
                bytes = Math.min(bytes, Math.max(0, limit - usage + files));
            }
        }
        return bytes;
    }

    /** The number behind a name at the start of a line; -1 when there is none. */
    private static long value(@Nullable String text, String name) {
        for (String line : text == null ? new String[0] : text.split("\n")) {
            if (line.startsWith(name)) {
                return number(line.substring(name.length()).replace("kB", ""));
            }
        }
        return -1;
    }

    /** A whole number; -1 for a text that is none, such as {@code max}. */
    private static long number(@Nullable String text) {
        try {
            return text == null ? -1 : Long.parseLong(text.strip());
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    private static @Nullable String read(Path file) {
        try {
            return Files.readString(file, StandardCharsets.UTF_8);
        } catch (IOException e) {
            return null;
        }
    }
}
