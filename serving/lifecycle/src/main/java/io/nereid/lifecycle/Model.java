// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.lifecycle.TransitionPolicy.VersionSnapshot;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** All versions of one model, in the order they were first mentioned. Confined to the deciding thread. */
final class Model {
    final String name;
    final List<Version> versions = new ArrayList<>();

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

    List<VersionSnapshot> snapshot() {
        return versions.stream()
                .map(v -> new VersionSnapshot(v.id.version(), v.phase, v.aspired))
                .toList();
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
        return new ServingMap.Entry(List.copyOf(numbers), List.copyOf(lives), List.copyOf(states), ready(numbers));
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
