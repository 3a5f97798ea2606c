// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.repository.ManagedModel;
import io.nereid.repository.ManagedModels;
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
 * Deploys the models of all revisions to the engine and tracks the state of each. The engine's source
 * ({@link ManagedModels}) always receives the complete list of models; calls never overlap, and changes during a call
 * are combined into the next one. Confined to the event loop thread.
 */
public final class ModelDeployer {
    private static final Logger LOG = LoggerFactory.getLogger(ModelDeployer.class);

    /** Delay before a list that the source rejected is sent again. */
    private static final Duration RETRY = Duration.ofSeconds(1);

    private final EventLoop loop;
    private final ManagedModels source;
    private final Map<String, ManagedModel> desired = new LinkedHashMap<>();
    /** The names in the engine by the name of each managed model. */
    private final Map<String, List<String>> names = new HashMap<>();
    /** The states of the versions by the model's name in the engine. */
    private final Map<String, Map<Long, ServableState>> states = new HashMap<>();

    private final Map<String, Runnable> listeners = new HashMap<>();
    /** Whether a call to the source is in progress. */
    private boolean calling;
    /** Whether the list has changed since the call in progress began. */
    private boolean dirty;

    public ModelDeployer(EventLoop loop, ManagedModels source) {
        this.loop = loop;
        this.source = source;
    }

    /** Deploys or updates a model; {@code changed} is called at every state change, until the model is forgotten. */
    void deploy(ManagedModel model, Runnable changed) {
        ManagedModel before = desired.put(model.name(), model);
        listeners.put(model.name(), changed);
        if (before == null) {
            // States of an earlier deployment must not be taken for states of this one.
            names.remove(model.name());
            states.entrySet()
                    .removeIf(e -> isOf(model.name(), e.getKey())
                            && e.getValue().values().stream().allMatch(ModelDeployer::ended));
        }
        if (!model.equals(before)) {
            sendList();
        }
    }

    /** Removes a model from the list; the engine unloads it. */
    void undeploy(String name) {
        if (desired.remove(name) != null) {
            sendList();
        }
    }

    /** Whether a removed model has been unloaded completely. */
    boolean isUnloaded(String name) {
        return !calling && !dirty && states.keySet().stream().noneMatch(n -> isOf(name, n));
    }

    private static boolean ended(ServableState state) {
        return state.phase() == Phase.FAILED || state.phase() == Phase.GONE;
    }

    /** Whether a name in the engine belongs to a managed model. */
    private static boolean isOf(String managed, String name) {
        return name.equals(managed) || (name.startsWith(managed) && name.charAt(managed.length()) == '/');
    }

    /** Removes the listener and the states of a removed model. */
    void forget(String name) {
        if (!desired.containsKey(name)) {
            listeners.remove(name);
            names.remove(name);
            states.keySet().removeIf(n -> isOf(name, n));
        }
    }

    private void sendList() {
        dirty = true;
        if (calling) {
            return;
        }
        calling = true;
        dirty = false;
        List<ManagedModel> all = List.copyOf(desired.values());
        loop.supply(() -> source.place(all), this::accepted);
    }

    private void accepted(@Nullable Map<String, List<String>> result, @Nullable RuntimeException error) {
        calling = false;
        List<Runnable> toNotify = new ArrayList<>();
        if (result == null) {
            LOG.error("models cannot be deployed: {}", FailureMessages.text(error));
            EventLoop.Timer unused = loop.after(RETRY, this::sendList);
        } else {
            result.forEach((name, all) -> {
                if (desired.containsKey(name) && !all.equals(names.put(name, all))) {
                    toNotify.add(listeners.getOrDefault(name, () -> {}));
                }
            });
        }
        if (dirty) {
            sendList();
        }
        // Listeners of removed models are called, too: they wait until the engine has unloaded their model.
        listeners.forEach((name, listener) -> {
            if (!desired.containsKey(name)) {
                toNotify.add(listener);
            }
        });
        toNotify.forEach(Runnable::run);
    }

    /** Receives a state change of a model version in the engine. */
    public void state(ServableState state) {
        String model = state.id().model();
        Runnable listener = null;
        // The models of a repository are named MANAGED/NAME: the listener is that of the longest matching prefix.
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

    /** The model's names in the engine: several for a repository, none before it is deployed. */
    List<String> names(String managed) {
        return names.getOrDefault(managed, List.of());
    }

    /** Whether the model, or every model of the repository, is available. */
    boolean available(String managed) {
        List<String> all = names(managed);
        return !all.isEmpty()
                && all.stream()
                        .allMatch(n -> states.getOrDefault(n, Map.of()).values().stream()
                                .anyMatch(s -> s.phase() == Phase.AVAILABLE));
    }

    /**
     * Returns why the last change of an available model was rejected, so that what it was before serves on; null when
     * there was none, and while it is being loaded for the first time.
     */
    @Nullable String rejection(String managed) {
        List<String> reasons = new ArrayList<>();
        for (String name : names(managed)) {
            for (ServableState s : states.getOrDefault(name, Map.of()).values()) {
                if (s.phase() == Phase.AVAILABLE && s.reason() != null) {
                    reasons.add(s.reason());
                }
            }
        }
        return reasons.isEmpty() ? null : String.join("; ", reasons);
    }

    /** Returns why the model cannot be served; null while it is available or can become so. */
    @Nullable String failure(String managed) {
        List<String> reasons = new ArrayList<>();
        for (String name : names(managed)) {
            Map<Long, ServableState> versions = states.getOrDefault(name, Map.of());
            boolean available = versions.values().stream().anyMatch(s -> s.phase() == Phase.AVAILABLE);
            boolean pending = versions.values().stream().anyMatch(s -> !ended(s));
            for (ServableState s : versions.values()) {
                if (!available && !pending && s.phase() == Phase.FAILED) {
                    String what = name.equals(managed) ? "" : "model '" + name.substring(managed.length() + 1) + "': ";
                    reasons.add(what + (s.reason() == null ? "it failed to load" : s.reason()));
                }
            }
        }
        return reasons.isEmpty() ? null : String.join("; ", reasons);
    }
}
