// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.ModelControl.Label;
import io.nereid.spi.ServableState;
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
 * All models, and what others see of them. Confined to the deciding thread, but for {@link #map}, {@link #labels} and {@link #listen}.
 * What changed is published in this order: the new map, the draining of what left it, the news.
 */
final class Board {
    private static final Logger LOG = LoggerFactory.getLogger(Board.class);

    private final CopyOnWriteArrayList<Consumer<ServableState>> listeners = new CopyOnWriteArrayList<>();
    private final Map<String, Model> models = new LinkedHashMap<>();
    private final Map<String, Model> changed = new LinkedHashMap<>();
    private final List<ServableState> news = new ArrayList<>();

    /** Models that had, or have, a version that depends on others. */
    private final Set<Model> composed = new LinkedHashSet<>();

    /** Held while the map is replaced, which labels do on any thread. */
    private final Object mapLock = new Object();

    private final List<Live> toDrain = new ArrayList<>();
    private volatile ServingMap map = ServingMap.EMPTY;

    ServingMap map() {
        return map;
    }

    Runnable listen(Consumer<ServableState> listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }

    /** Replaces a model's labels, at once. On any thread. */
    void labels(String model, Map<String, Label> labels) {
        synchronized (mapLock) {
            map = map.withLabels(model, labels);
        }
    }

    /** Notes that a model has a version that depends on others. */
    void composes(Model model) {
        composed.add(model);
    }

    /** Models with a wanted version that depends on others. */
    List<Model> composed() {
        return composed.isEmpty()
                ? List.of()
                : composed.stream().filter(Model::composed).toList();
    }

    Collection<Model> models() {
        return models.values();
    }

    @Nullable Model find(String name) {
        return models.get(name);
    }

    Model model(String name) {
        return models.computeIfAbsent(name, Model::new);
    }

    /** Has a model's entry written anew. */
    void changed(Model model) {
        changed.put(model.name, model);
    }

    /** Has a version's step told, if it stands for its number. */
    void changed(Model model, Version v) {
        changed(model);
        if (model.shown(v.id.version()) == v) {
            news.add(v.state());
        }
    }

    /** Has a version give out no more handles, once it has left the map. */
    void drain(@Nullable Live live) {
        if (live != null) {
            toDrain.add(live);
        }
    }

    /** Whether there is anything to publish. */
    boolean dirty() {
        return !changed.isEmpty() || !toDrain.isEmpty() || !news.isEmpty();
    }

    void publish() {
        if (!changed.isEmpty()) {
            Map<String, ServingMap.@Nullable Entry> entries = new HashMap<>();
            for (Model model : changed.values()) {
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
        toDrain.forEach(Live::drain);
        toDrain.clear();
        for (ServableState state : List.copyOf(news)) {
            for (Consumer<ServableState> listener : listeners) {
                try {
                    listener.accept(state);
                } catch (RuntimeException e) {
                    LOG.error("a listener failed on {}", state, e);
                }
            }
        }
        news.clear();
    }
}
