// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.base.ServingException;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListChange.Action;
import io.nereid.spi.management.ModelListEntry;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The difference between a new model list and the one in force. Immutable.
 *
 * @param next models of the new list by name, in its order
 * @param before models of the list in force by name, in its order
 */
record ModelListDiff(Map<String, ModelListEntry> next, Map<String, ModelListEntry> before) {
    static ModelListDiff of(List<ModelListEntry> next, List<ModelListEntry> before) {
        return new ModelListDiff(byName(next), byName(before));
    }

    private static Map<String, ModelListEntry> byName(List<ModelListEntry> models) {
        Map<String, ModelListEntry> byName = new LinkedHashMap<>();
        models.forEach(m -> byName.put(m.name(), m));
        return byName;
    }

    /** Models to read: new ones, and those with another base path or version policy. */
    Set<String> toRead() {
        Set<String> names = new LinkedHashSet<>();
        next.forEach((name, m) -> {
            ModelListEntry old = before.get(name);
            if (old == null
                    || !old.basePath().equals(m.basePath())
                    || !Objects.equals(old.versionPolicy(), m.versionPolicy())) {
                names.add(name);
            }
        });
        return names;
    }

    List<String> removed() {
        return before.keySet().stream().filter(n -> !next.containsKey(n)).toList();
    }

    /** The change of a model that is not read. */
    ModelListChange unread(String name) {
        boolean same = Objects.equals(next.get(name), before.get(name));
        return new ModelListChange(name, same ? Action.KEPT : Action.CHANGED, List.of(), List.of(), null);
    }

    static ModelListChange gone(String name, Set<Long> served) {
        return new ModelListChange(name, Action.REMOVED, List.of(), List.copyOf(served), null);
    }

    /**
     * The change of a model that was read.
     *
     * @param served versions that were served before
     * @param error why no version is accepted; null if versions are accepted now or later
     */
    ModelListChange read(StoredModel model, Set<Long> served, @Nullable ServingException error) {
        String name = model.entry().name();
        ModelListEntry old = before.get(name);
        ModelListEntry now = Objects.requireNonNull(next.get(name));
        Action action = old == null ? Action.ADDED : Action.CHANGED;
        if (error != null) {
            return new ModelListChange(name, action, List.of(), List.of(), error);
        }
        boolean moved = old == null || !old.basePath().equals(now.basePath());
        TreeSet<Long> wanted = new TreeSet<>();
        List<Long> load = new ArrayList<>();
        ServingException bad = null;
        for (Version v : model.aspired()) {
            wanted.add(v.version());
            if (v.error() != null) {
                bad = v.error();
            } else if (moved || !served.contains(v.version())) {
                load.add(v.version());
            }
        }
        List<Long> unload = served.stream().filter(v -> !wanted.contains(v)).toList();
        return new ModelListChange(name, action, List.copyOf(load), unload, bad);
    }
}
