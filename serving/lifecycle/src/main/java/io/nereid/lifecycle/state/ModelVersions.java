// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.state;

import io.nereid.lifecycle.policy.AspiredVersionPolicy.VersionSnapshot;
import io.nereid.lifecycle.serving.LiveServable;
import io.nereid.lifecycle.serving.ServingMap;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The versions of one model, in the order in which they were first aspired. During a reload there are two entries with
 * the same number. Confined to the manager thread.
 */
public final class ModelVersions {
    final String name;
    public final List<ManagedVersion> versions = new ArrayList<>();

    /** Whether its new versions become available together or not at all. */
    public boolean atomic;

    ModelVersions(String name) {
        this.name = name;
    }

    /** Returns the version that a new list refers to by number: the aspired one, else one that is still available. */
    public @Nullable ManagedVersion current(long number) {
        ManagedVersion serving = null;
        for (ManagedVersion v : versions) {
            if (v.id.version() == number) {
                if (v.aspired) {
                    return v;
                }
                serving = v.phase == Phase.AVAILABLE ? v : serving;
            }
        }
        return serving;
    }

    /** Returns the version that represents a number in the index: the available one, else the newest. */
    public @Nullable ManagedVersion shown(long number) {
        ManagedVersion newest = null;
        for (ManagedVersion v : versions) {
            if (v.id.version() == number) {
                if (v.phase == Phase.AVAILABLE) {
                    return v;
                }
                newest = v;
            }
        }
        return newest;
    }

    /**
     * Returns the input of the policy. Versions that must wait for dependencies appear as LOADING, so that it skips
     * them.
     */
    public List<VersionSnapshot> snapshot(Predicate<ManagedVersion> waits) {
        return versions.stream()
                .map(v -> new VersionSnapshot(
                        v.id.version(), v.phase == Phase.TRACKED && waits.test(v) ? Phase.LOADING : v.phase, v.aspired))
                .toList();
    }

    /** Returns whether any aspired version, its reload, or its failed reload has dependencies. */
    boolean composed() {
        for (ManagedVersion v : versions) {
            if (v.aspired && (depends(v) || depends(v.successor) || depends(v.failedReload))) {
                return true;
            }
        }
        return false;
    }

    private static boolean depends(@Nullable ManagedVersion v) {
        return v != null && !v.dependencies.isEmpty();
    }

    /** Returns the names of the models that its aspired versions depend on. */
    List<String> dependencies() {
        Set<String> names = new LinkedHashSet<>();
        for (ManagedVersion v : versions) {
            if (v.aspired) {
                names.addAll(v.successor == null ? v.dependencies : v.successor.dependencies);
            }
        }
        return List.copyOf(names);
    }

    public boolean anyAvailable() {
        return versions.stream().anyMatch(v -> v.phase == Phase.AVAILABLE);
    }

    public List<ManagedVersion> aspired() {
        return versions.stream()
                .filter(v -> v.aspired)
                .sorted(Comparator.comparing((ManagedVersion v) -> v.id).reversed())
                .toList();
    }

    ServingMap.Entry entry() {
        TreeMap<Long, ManagedVersion> shown = new TreeMap<>(Comparator.reverseOrder());
        for (ManagedVersion v : versions) {
            ManagedVersion s = shown(v.id.version());
            if (s != null) {
                shown.put(v.id.version(), s);
            }
        }
        List<Long> numbers = new ArrayList<>();
        List<LiveServable> lives = new ArrayList<>();
        List<ServableState> states = new ArrayList<>();
        for (ManagedVersion v : shown.values()) {
            states.add(v.state());
            if (v.phase == Phase.AVAILABLE && v.live != null) {
                numbers.add(v.id.version());
                lives.add(v.live);
            }
        }
        return new ServingMap.Entry(
                List.copyOf(numbers), List.copyOf(lives), List.copyOf(states), ready(numbers), Map.of());
    }

    private boolean ready(List<Long> serving) {
        boolean any = false;
        for (ManagedVersion v : versions) {
            if (v.aspired) {
                any = true;
                if (v.phase == Phase.FAILED && serving.stream().noneMatch(n -> n <= v.id.version())) {
                    return false;
                }
            }
        }
        return !any || !serving.isEmpty();
    }
}
