// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.waiters;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.serving.ServingMap;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.VersionLabel;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * A caller of {@code ServableManager.waitUntil} that waits until versions have reached a phase or ended. Confined to
 * the manager thread.
 */
final class PhaseWaiter {
    private final CompletableFuture<WaitResult> future;
    private final Phase goal;

    /** References that have neither reached the goal nor ended, by model. */
    private final Map<String, Set<ModelRef>> open = new LinkedHashMap<>();

    /** Models of which a version may have ended since the last check. */
    private final Set<String> toCheck = new LinkedHashSet<>();

    /** Models with a label among the references: its targets may change without a state change of a version. */
    private final Set<String> labelled = new LinkedHashSet<>();

    private final Map<ServableId, Phase> phases = new LinkedHashMap<>();
    private boolean all = true;

    PhaseWaiter(Collection<ModelRef> refs, Phase goal, CompletableFuture<WaitResult> future) {
        for (ModelRef ref : refs) {
            open.computeIfAbsent(ref.model(), m -> new LinkedHashSet<>()).add(ref);
            toCheck.add(ref.model());
            if (ref.label() != null) {
                labelled.add(ref.model());
            }
        }
        this.goal = goal;
        this.future = future;
    }

    /** Called after a state change of a version. */
    void stateChanged(ServingMap map, ServableState state) {
        reached(map, state);
        if (ended(state) && open.containsKey(state.id().model())) {
            toCheck.add(state.id().model());
        }
    }

    private void reached(ServingMap map, ServableState state) {
        Set<ModelRef> refs = open.get(state.id().model());
        if (refs != null
                && state.phase() == goal
                && refs.removeIf(ref -> means(map, ref, state.id().version()))) {
            phases.put(state.id(), goal);
            if (refs.isEmpty()) {
                open.remove(state.id().model());
            }
        }
    }

    /** Completes the future if all references have reached the goal or ended; returns whether it did. */
    boolean check(ServingMap map) {
        toCheck.addAll(labelled);
        for (String model : toCheck) {
            check(map, model);
        }
        toCheck.clear();
        return open.isEmpty() && complete();
    }

    private void check(ServingMap map, String model) {
        for (ServableState state : states(map, model)) {
            reached(map, state);
        }
        Set<ModelRef> refs = open.get(model);
        if (refs == null) {
            return;
        }
        refs.removeIf(ref -> {
            List<ServableState> states = states(map, model).stream()
                    .filter(s -> means(map, ref, s.id().version()))
                    .toList();
            boolean over = !states.isEmpty() && states.stream().allMatch(PhaseWaiter::ended);
            if (over) {
                all = false;
                states.forEach(s -> phases.put(s.id(), s.phase()));
            }
            return over;
        });
        if (refs.isEmpty()) {
            open.remove(model);
        }
    }

    /** Completes the future at the timeout, with the phases at that time. */
    void expire(ServingMap map) {
        all = false;
        open.forEach((model, refs) -> {
            for (ServableState s : states(map, model)) {
                if (refs.stream().anyMatch(ref -> means(map, ref, s.id().version()))) {
                    phases.putIfAbsent(s.id(), s.phase());
                }
            }
        });
        open.clear();
        var unused = complete();
    }

    void fail(ServingException e) {
        future.completeExceptionally(e);
    }

    private static boolean ended(ServableState state) {
        return state.phase() == Phase.GONE || state.phase() == Phase.FAILED;
    }

    private boolean complete() {
        future.complete(new WaitResult(all, Map.copyOf(phases)));
        return true;
    }

    private static List<ServableState> states(ServingMap map, String model) {
        ServingMap.Entry entry = map.entry(model);
        return entry == null ? List.of() : entry.states();
    }

    private static boolean means(ServingMap map, ModelRef ref, long version) {
        if (ref.label() == null) {
            return ref.version() == ModelRef.ANY || ref.version() == version;
        }
        VersionLabel label = map.labels(ref.model()).get(ref.label());
        return label != null && label.targets().stream().anyMatch(t -> t.version() == version);
    }
}
