// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.lifecycle.Manager.Reached;
import io.nereid.spi.ModelControl.Label;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/** Somebody who waits until versions have come to a certain phase, or to their end. Confined to the deciding thread. */
final class Waiting {
    final CompletableFuture<Reached> future;
    private final Phase goal;
    private final Set<ModelRef> open;
    private final Map<ServableId, Phase> phases = new LinkedHashMap<>();
    private boolean all = true;

    Waiting(Collection<ModelRef> refs, Phase goal, CompletableFuture<Reached> future) {
        this.open = new LinkedHashSet<>(refs);
        this.goal = goal;
        this.future = future;
    }

    /** Looks at how things stand. */
    void begin(ServingMap map) {
        for (ModelRef ref : List.copyOf(open)) {
            states(map, ref).forEach(state -> heard(map, state));
        }
    }

    /** A version took a step. */
    void heard(ServingMap map, ServableState state) {
        if (state.phase() != goal) {
            return;
        }
        open.removeIf(ref -> {
            boolean met = ref.model().equals(state.id().model())
                    && means(map, ref, state.id().version());
            if (met) {
                phases.put(state.id(), goal);
            }
            return met;
        });
    }

    /** Completes when it can; true when it has. */
    boolean check(ServingMap map) {
        open.removeIf(ref -> {
            List<ServableState> states = states(map, ref);
            boolean over = !states.isEmpty()
                    && states.stream().allMatch(s -> s.phase() == Phase.GONE || s.phase() == Phase.FAILED);
            if (over) {
                all = false;
                states.forEach(s -> phases.put(s.id(), s.phase()));
            }
            return over;
        });
        return open.isEmpty() && complete();
    }

    /** Nobody waits any longer: completes with what has come of it so far. */
    void expire(ServingMap map) {
        all = false;
        for (ModelRef ref : open) {
            states(map, ref).forEach(s -> phases.putIfAbsent(s.id(), s.phase()));
        }
        open.clear();
        var unused = complete();
    }

    private boolean complete() {
        future.complete(new Reached(all, Map.copyOf(phases)));
        return true;
    }

    private static List<ServableState> states(ServingMap map, ModelRef ref) {
        ServingMap.Entry entry = map.entry(ref.model());
        return entry == null
                ? List.of()
                : entry.states().stream()
                        .filter(s -> means(map, ref, s.id().version()))
                        .toList();
    }

    private static boolean means(ServingMap map, ModelRef ref, long version) {
        if (ref.label() == null) {
            return ref.version() == ModelRef.ANY || ref.version() == version;
        }
        Label label = map.labels(ref.model()).get(ref.label());
        return label != null && label.targets().stream().anyMatch(t -> t.version() == version);
    }
}
