// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Limits of the system for child processes: control groups of the second version, where this process may make some. Immutable.
 */
final class Cgroups {
    private static final Logger LOG = LoggerFactory.getLogger(Cgroups.class);
    private static final Path ROOT = Path.of("/sys/fs/cgroup");

    private final @Nullable Path parent;

    Cgroups() {
        this.parent = parent();
    }

    private static @Nullable Path parent() {
        try {
            if (!Files.exists(ROOT.resolve("cgroup.controllers"))) {
                return null;
            }
            String own = Files.readString(Path.of("/proc/self/cgroup"))
                    .lines()
                    .filter(l -> l.startsWith("0::"))
                    .map(l -> l.substring(3))
                    .findFirst()
                    .orElse("/");
            // A group with processes of its own cannot hand controllers on, so the children go beside this process.
            Path here = ROOT.resolve(own.substring(1));
            Path beside = own.equals("/") ? here : here.getParent();
            if (beside == null
                    || !Files.isWritable(beside)
                    || !Files.readString(beside.resolve("cgroup.subtree_control"))
                            .contains("memory")) {
                return null;
            }
            return beside;
        } catch (IOException | RuntimeException e) {
            LOG.debug("control groups cannot be used", e);
            return null;
        }
    }

    boolean available() {
        return parent != null;
    }

    /** A group with limits; null where there can be none, or nothing is limited. */
    @Nullable Path make(String name, long memoryBytes, double cpus) {
        Path beside = parent;
        if (beside == null || (memoryBytes <= 0 && cpus <= 0)) {
            return null;
        }
        Path group = beside.resolve("nereid-" + ProcessHandle.current().pid() + "-" + name.replace('/', '_'));
        try {
            Files.createDirectories(group);
            if (memoryBytes > 0) {
                Files.writeString(group.resolve("memory.max"), Long.toString(memoryBytes));
            }
            if (cpus > 0 && Files.exists(group.resolve("cpu.max"))) {
                Files.writeString(
                        group.resolve("cpu.max"), String.format(Locale.ROOT, "%d 100000", (long) (cpus * 100_000)));
            }
            return group;
        } catch (IOException e) {
            LOG.debug("{} cannot be made", group, e);
            remove(group);
            return null;
        }
    }

    static void remove(@Nullable Path group) {
        if (group != null) {
            try {
                Files.deleteIfExists(group);
            } catch (IOException e) {
                LOG.debug("{} stays", group, e);
            }
        }
    }
}
