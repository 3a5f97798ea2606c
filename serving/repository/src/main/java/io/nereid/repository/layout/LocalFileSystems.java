// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.base.Clock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Which directories are on a file system of this machine's kernel, where an inode number stays with its file and every
 * write passes the kernel's notification. Network file systems and those in user space promise neither. Thread-safe.
 */
public final class LocalFileSystems {
    private static final Set<String> TYPES = Set.of(
            "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "zfs", "bcachefs", "tmpfs", "ramfs", "overlay");

    private static final boolean LINUX =
            System.getProperty("os.name", "").toLowerCase(Locale.ROOT).startsWith("linux");

    /** By device number, which another file system may get after an unmount, so that an answer is kept for a minute. */
    private static final Map<Object, Answer> DEVICES = new ConcurrentHashMap<>();

    private static final long KEPT_NANOS = 60_000_000_000L;

    private record Answer(boolean local, long nanos) {}

    private LocalFileSystems() {}

    /** Whether a directory is known to be on such a file system; follows links. False where that is not known. */
    public static boolean contains(Path directory) {
        if (!LINUX) {
            return false;
        }
        try {
            Object device = Files.getAttribute(directory, "unix:dev");
            long now = Clock.system().nanos();
            Answer known = DEVICES.get(device);
            if (known == null || now - known.nanos > KEPT_NANOS) {
                known = new Answer(TYPES.contains(Files.getFileStore(directory).type()), now);
                DEVICES.put(device, known);
            }
            return known.local;
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException | SecurityException e) {
            return false;
        }
    }
}
