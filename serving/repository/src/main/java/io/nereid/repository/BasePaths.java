// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.polling.ModelScanner.Found;
import io.nereid.repository.polling.ModelTree;
import io.nereid.repository.polling.ModelTrees;
import io.nereid.spi.management.ModelListEntry;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

/**
 * The base paths of a model list, and which of them may have changed. Guarded by the source's lock.
 */
final class BasePaths {
    private final ModelTrees trees;
    private final Map<String, Item> items = new TreeMap<>();
    private final Map<ModelTree, Item> byTree = new LinkedHashMap<>();
    private Found found = new Found(Map.of(), Set.of(), Set.of());

    BasePaths(ModelTrees trees) {
        this.trees = trees;
    }

    /** A model of the list. */
    private record Item(ModelListEntry served, ModelEntry entry, ModelTree tree) {}

    /** Replaces the list; unchanged models keep their stamps. */
    void replace(List<ModelListEntry> models) {
        Map<String, Item> before = new TreeMap<>(items);
        items.clear();
        for (ModelListEntry m : models) {
            Item item = before.get(m.name());
            if (item != null && item.served.equals(m)) {
                items.put(m.name(), item);
                before.remove(m.name());
            } else {
                ModelEntry entry = ModelEntry.of(m);
                items.put(m.name(), new Item(m, entry, trees.add(entry.directory())));
            }
        }
        before.values().forEach(gone -> trees.remove(gone.tree));
        byTree.clear();
        items.values().forEach(item -> byTree.put(item.tree, item));
        found = found(items.values().stream().map(Item::entry).toList());
    }

    /** The entries of a list that is not in force. */
    static Found foundOf(List<ModelListEntry> models) {
        return found(models.stream().map(ModelEntry::of).toList());
    }

    private static Found found(List<ModelEntry> models) {
        Map<String, List<ModelEntry>> entries = new TreeMap<>();
        models.forEach(m -> entries.put(m.name(), List.of(m)));
        return new Found(entries, Set.of(), Set.of());
    }

    Found found() {
        return found;
    }

    int size() {
        return items.size();
    }

    /** The models that may have changed since they were last read. */
    Set<String> changed() {
        trees.begin();
        Set<String> changed = new LinkedHashSet<>();
        Collection<ModelTree> candidates = trees.candidates();
        for (ModelTree tree : candidates == null ? byTree.keySet() : candidates) {
            if (trees.changed(tree)) {
                changed.add(Objects.requireNonNull(byTree.get(tree)).entry.name());
            }
        }
        return changed;
    }

    /** Call before models are read, so that the next poll detects a change during the read. */
    void capture(Iterable<String> names) {
        for (String name : names) {
            Item item = items.get(name);
            if (item != null) {
                var unused = trees.capture(item.tree);
            }
        }
    }
}
