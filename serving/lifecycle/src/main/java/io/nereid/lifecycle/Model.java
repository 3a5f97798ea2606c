// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.lifecycle.TransitionPolicy.VersionSnapshot;
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

/** All versions of one model, in the order they were first mentioned. Confined to the deciding thread. */
final class Model {
    final String name;
    final List<Version> versions = new ArrayList<>();

    /** Whether what is new of it takes over together or not at all. */
    boolean together;

    Model(String name) {
        this.name = name;
    }

    /** The version that a new list speaks about: the aspired one of that number, else one that still serves. */
    @Nullable Version current(long number) {
        Version serving = null;
        for (Version v : versions) {
            if (v.id.version() == number) {
                if (v.aspired) {
                    return v;
                }
                serving = v.phase == Phase.AVAILABLE ? v : serving;
            }
        }
        return serving;
    }

    /** The one that stands for its number in the index: the one that serves, else the newest. */
    @Nullable Version shown(long number) {
        Version newest = null;
        for (Version v : versions) {
            if (v.id.version() == number) {
                if (v.phase == Phase.AVAILABLE) {
                    return v;
                }
                newest = v;
            }
        }
        return newest;
    }

    /** How the versions stand; those that have to wait look as if they were being loaded. */
    List<VersionSnapshot> snapshot(Predicate<Version> waits) {
        return versions.stream()
                .map(v -> new VersionSnapshot(
                        v.id.version(), v.phase == Phase.TRACKED && waits.test(v) ? Phase.LOADING : v.phase, v.aspired))
                .toList();
    }

    /** Whether any wanted version, or what should follow it, depends on other models. */
    boolean composed() {
        for (Version v : versions) {
            if (v.aspired && (depends(v) || depends(v.successor) || depends(v.refused))) {
                return true;
            }
        }
        return false;
    }

    private static boolean depends(@Nullable Version v) {
        return v != null && !v.dependencies.isEmpty();
    }

    /** What its wanted versions depend on. */
    List<String> dependencies() {
        Set<String> names = new LinkedHashSet<>();
        for (Version v : versions) {
            if (v.aspired) {
                names.addAll(v.successor == null ? v.dependencies : v.successor.dependencies);
            }
        }
        return List.copyOf(names);
    }

    boolean anyAvailable() {
        return versions.stream().anyMatch(v -> v.phase == Phase.AVAILABLE);
    }

    List<Version> aspired() {
        return versions.stream()
                .filter(v -> v.aspired)
                .sorted(Comparator.comparing((Version v) -> v.id).reversed())
                .toList();
    }

    ServingMap.Entry entry() {
        TreeMap<Long, Version> shown = new TreeMap<>(Comparator.reverseOrder());
        for (Version v : versions) {
            Version s = shown(v.id.version());
            if (s != null) {
                shown.put(v.id.version(), s);
            }
        }
        List<Long> numbers = new ArrayList<>();
        List<Live> lives = new ArrayList<>();
        List<ServableState> states = new ArrayList<>();
        for (Version v : shown.values()) {
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
        for (Version v : versions) {
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
