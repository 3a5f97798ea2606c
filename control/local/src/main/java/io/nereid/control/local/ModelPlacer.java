// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.repository.PlacedModels.PlacedModel;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands whole sets of models to the engine, one after the other, and remembers how each model fares. Confined to the deciding
 * thread.
 */
final class ModelPlacer {
    private static final Logger LOG = LoggerFactory.getLogger(ModelPlacer.class);

    /** Time after which a set that the engine would not have is handed over again. */
    private static final Duration RETRY = Duration.ofSeconds(1);

    private final Loop loop;
    private final Models models;
    private final Map<String, PlacedModel> wanted = new LinkedHashMap<>();
    private final Map<String, List<String>> names = new HashMap<>();
    private final Map<String, Map<Long, ServableState>> states = new HashMap<>();
    private final Map<String, Runnable> listeners = new HashMap<>();
    private boolean placing;
    private boolean dirty;

    ModelPlacer(Loop loop, Models models) {
        this.loop = loop;
        this.models = models;
    }

    /** Has a model served; {@code changed} is called whenever something is heard of it, until it is withdrawn. */
    void place(PlacedModel model, Runnable changed) {
        PlacedModel before = wanted.put(model.name(), model);
        listeners.put(model.name(), changed);
        if (before == null) {
            // What an earlier try left behind says nothing about this one.
            names.remove(model.name());
            states.entrySet()
                    .removeIf(e -> isOf(model.name(), e.getKey())
                            && e.getValue().values().stream().allMatch(ModelPlacer::ended));
        }
        if (!model.equals(before)) {
            place();
        }
    }

    /** No longer serves a model. */
    void withdraw(String name) {
        if (wanted.remove(name) != null) {
            place();
        }
    }

    /** Whether nothing of a withdrawn model is left in the engine. */
    boolean gone(String name) {
        return !placing && !dirty && states.keySet().stream().noneMatch(n -> isOf(name, n));
    }

    private static boolean ended(ServableState state) {
        return state.phase() == Phase.FAILED || state.phase() == Phase.GONE;
    }

    private static boolean isOf(String placed, String name) {
        return name.equals(placed) || (name.startsWith(placed) && name.charAt(placed.length()) == '/');
    }

    /** Forgets a withdrawn model and whoever listened to it. */
    void forget(String name) {
        if (!wanted.containsKey(name)) {
            listeners.remove(name);
            names.remove(name);
            states.keySet().removeIf(n -> isOf(name, n));
        }
    }

    private void place() {
        dirty = true;
        if (placing) {
            return;
        }
        placing = true;
        dirty = false;
        List<PlacedModel> all = List.copyOf(wanted.values());
        loop.io(() -> {
            Map<String, List<String>> placed;
            try {
                placed = models.place(all);
            } catch (RuntimeException e) {
                LOG.error("models cannot be placed: {}", ModelForm.text(e));
                placed = null;
            }
            Map<String, List<String>> result = placed;
            loop.execute(() -> placed(result));
        });
    }

    private void placed(@Nullable Map<String, List<String>> result) {
        placing = false;
        List<Runnable> toTell = new ArrayList<>();
        if (result == null) {
            Loop.Timer unused = loop.after(RETRY, this::place);
        } else {
            result.forEach((name, all) -> {
                if (wanted.containsKey(name) && !all.equals(names.put(name, all))) {
                    toTell.add(listeners.getOrDefault(name, () -> {}));
                }
            });
        }
        if (dirty) {
            place();
        }
        listeners.forEach((name, listener) -> {
            if (!wanted.containsKey(name)) {
                toTell.add(listener);
            }
        });
        toTell.forEach(Runnable::run);
    }

    /** Something happened to a version of a model in the engine. */
    void state(ServableState state) {
        String model = state.id().model();
        Runnable listener = null;
        String owner = model;
        while (listener == null && !owner.isEmpty()) {
            listener = listeners.get(owner);
            if (listener == null) {
                int slash = owner.lastIndexOf('/');
                owner = slash < 0 ? "" : owner.substring(0, slash);
            }
        }
        if (listener == null) {
            return;
        }
        Map<Long, ServableState> versions = states.computeIfAbsent(model, m -> new TreeMap<>());
        if (state.phase() == Phase.GONE) {
            versions.remove(state.id().version());
            if (versions.isEmpty()) {
                states.remove(model);
            }
        } else {
            versions.put(state.id().version(), state);
        }
        listener.run();
    }

    /** The names in the engine; empty until the model has been placed. */
    List<String> names(String placed) {
        return names.getOrDefault(placed, List.of());
    }

    /** Whether every model that a placed one is answers. */
    boolean available(String placed) {
        List<String> all = names(placed);
        return !all.isEmpty()
                && all.stream()
                        .allMatch(n -> states.getOrDefault(n, Map.of()).values().stream()
                                .anyMatch(s -> s.phase() == Phase.AVAILABLE));
    }

    /** Why it cannot be served, or null while it may be. */
    @Nullable String failure(String placed) {
        List<String> reasons = new ArrayList<>();
        for (String name : names(placed)) {
            Map<Long, ServableState> versions = states.getOrDefault(name, Map.of());
            boolean serves = versions.values().stream().anyMatch(s -> s.phase() == Phase.AVAILABLE);
            boolean hopes = versions.values().stream().anyMatch(s -> !ended(s));
            for (ServableState s : versions.values()) {
                if (!serves && !hopes && s.phase() == Phase.FAILED) {
                    String what = name.equals(placed) ? "" : "model '" + name.substring(placed.length() + 1) + "': ";
                    reasons.add(what + (s.reason() == null ? "it failed to load" : s.reason()));
                }
            }
        }
        return reasons.isEmpty() ? null : String.join("; ", reasons);
    }
}
