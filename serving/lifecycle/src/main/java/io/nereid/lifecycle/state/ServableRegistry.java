// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.state;

import io.nereid.lifecycle.serving.LiveServable;
import io.nereid.lifecycle.serving.ServingMap;
import io.nereid.spi.ServableState;
import io.nereid.spi.management.VersionLabel;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All models of the manager, and the publication of changes to readers and listeners. Confined to the manager thread,
 * except for {@link #map}, {@link #labels} and {@link #listen}, which are thread-safe.
 *
 * <p>{@link #publish} has a fixed order. First the new {@link ServingMap}: new requests no longer get versions that
 * have left it. Then those versions are drained; a request that read the old map sees that and reads the map again.
 * Listeners come last, so that they never learn of a state that readers cannot see yet.
 */
public final class ServableRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(ServableRegistry.class);

    private final CopyOnWriteArrayList<Consumer<ServableState>> listeners = new CopyOnWriteArrayList<>();
    private final Map<String, ModelVersions> models = new LinkedHashMap<>();
    private final Map<String, ModelVersions> changed = new LinkedHashMap<>();
    private final List<ServableState> stateChanges = new ArrayList<>();

    /** Models that had, or have, a version with dependencies on other models. */
    private final Set<ModelVersions> composed = new LinkedHashSet<>();

    /** Held while the map is replaced, since {@link #labels} does that on any thread. */
    private final Object mapLock = new Object();

    private final List<LiveServable> toDrain = new ArrayList<>();
    private volatile ServingMap map = ServingMap.EMPTY;

    public ServingMap map() {
        return map;
    }

    public Runnable listen(Consumer<ServableState> listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }

    /** Replaces the labels of a model, with immediate effect. Called on any thread. */
    public void labels(String model, Map<String, VersionLabel> labels) {
        synchronized (mapLock) {
            map = map.withLabels(model, labels);
        }
    }

    /** Notes that a model has a version with dependencies. */
    public void addComposed(ModelVersions model) {
        composed.add(model);
    }

    /** Returns the models with an aspired version that has dependencies. */
    public List<ModelVersions> composed() {
        return composed.isEmpty()
                ? List.of()
                : composed.stream().filter(ModelVersions::composed).toList();
    }

    public Collection<ModelVersions> models() {
        return models.values();
    }

    public @Nullable ModelVersions find(String name) {
        return models.get(name);
    }

    public ModelVersions model(String name) {
        return models.computeIfAbsent(name, ModelVersions::new);
    }

    /** Marks the entry of a model in the map for renewal. */
    public void changed(ModelVersions model) {
        changed.put(model.name, model);
    }

    /** Marks the new state of a version for publication, if that version represents its number in the index. */
    public void changed(ModelVersions model, ManagedVersion v) {
        changed(model);
        if (model.shown(v.id.version()) == v) {
            stateChanges.add(v.state());
        }
    }

    /** Marks a version to be drained after it has left the map. */
    public void drain(@Nullable LiveServable live) {
        if (live != null) {
            toDrain.add(live);
        }
    }

    /** Returns whether there is a change to publish. */
    public boolean dirty() {
        return !changed.isEmpty() || !toDrain.isEmpty() || !stateChanges.isEmpty();
    }

    /** Publishes all changes since the last call. */
    public void publish() {
        if (!changed.isEmpty()) {
            Map<String, ServingMap.@Nullable Entry> entries = new HashMap<>();
            for (ModelVersions model : changed.values()) {
                boolean empty = model.versions.isEmpty();
                entries.put(model.name, empty ? null : model.entry());
                if (empty) {
                    models.remove(model.name);
                    composed.remove(model);
                }
            }
            changed.clear();
            synchronized (mapLock) {
                map = map.with(entries);
            }
        }
        toDrain.forEach(LiveServable::drain);
        toDrain.clear();
        for (ServableState state : List.copyOf(stateChanges)) {
            for (Consumer<ServableState> listener : listeners) {
                try {
                    listener.accept(state);
                } catch (RuntimeException e) {
                    LOG.error("a listener failed on {}", state, e);
                }
            }
        }
        stateChanges.clear();
    }
}
