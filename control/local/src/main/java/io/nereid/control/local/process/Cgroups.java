// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Enforces memory and CPU limits of child processes with control groups (cgroup v2), where this process may create
 * some. Immutable.
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
            // cgroup v2 allows controllers for children only in a group without processes of its own ("no internal
            // processes"). So the children's groups are siblings of this process's group.
            Path here = ROOT.resolve(own.substring(1));
            Path siblings = own.equals("/") ? here : here.getParent();
            if (siblings == null
                    || !Files.isWritable(siblings)
                    || !Files.readString(siblings.resolve("cgroup.subtree_control"))
                            .contains("memory")) {
                return null;
            }
            return siblings;
        } catch (IOException | RuntimeException e) {
            LOG.debug("control groups cannot be used", e);
            return null;
        }
    }

    boolean available() {
        return parent != null;
    }

    /** Creates a group with limits; null where groups are not available or no limit is set. */
    @Nullable Path make(String name, long memoryBytes, double cpus) {
        Path siblings = parent;
        if (siblings == null || (memoryBytes <= 0 && cpus <= 0)) {
            return null;
        }
        Path group = siblings.resolve("nereid-" + ProcessHandle.current().pid() + "-" + name.replace('/', '_'));
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
            LOG.debug("{} cannot be created", group, e);
            remove(group);
            return null;
        }
    }

    static void remove(@Nullable Path group) {
        if (group != null) {
            try {
                Files.deleteIfExists(group);
            } catch (IOException e) {
                LOG.debug("{} cannot be removed", group, e);
            }
        }
    }
}
