// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.repository.config.ModelNames;
import io.nereid.repository.layout.RepositoryLayout;
import io.nereid.repository.layout.RepositoryLayout.Listing;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.problem.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * One root of a polled repository, as of the last scan. A scan lists the root only if it has changed, and looks into
 * those of its entries that have changed. Guarded by the source's lock.
 */
final class RootScan {
    private final Path root;
    private final RepositoryLayout layout;
    private final ModelTrees trees;
    private final Map<Path, Entry> entries = new HashMap<>();
    private final Map<ModelTree, Entry> byTree = new HashMap<>();
    private List<Path> children = List.of();
    private List<Entry> ordered = List.of();
    private boolean repository;

    /** The stamp of the root at the last scan; null if the next one must list it. */
    private @Nullable FileStamp stamp;

    private Listing listing = new Listing(List.of(), List.of(), false, false);

    /** An entry of the root. */
    private static final class Entry {
        final Path path;
        final ModelTree tree;
        Listing listing = new Listing(List.of(), List.of(), true, false);

        Entry(Path path, ModelTree tree) {
            this.path = path;
            this.tree = tree;
        }
    }

    RootScan(Path root, RepositoryLayout layout, ModelTrees trees) {
        this.root = root;
        this.layout = layout;
        this.trees = trees;
    }

    Listing listing() {
        return listing;
    }

    /**
     * Scans the root.
     *
     * @param changed receives the names of models whose files may have changed
     */
    void scan(Set<String> changed) {
        FileStamp now = FileStamp.read(root);
        boolean known = repository && now != null && now.equals(stamp);
        stamp = trees.settled(now) ? now : null;
        if (!known && !list(now)) {
            whole(changed);
            return;
        }
        boolean differs = !known;
        Collection<ModelTree> candidates = known ? trees.candidates() : null;
        for (Entry entry : candidates == null ? ordered : entriesOf(candidates)) {
            if (trees.changed(entry.tree)) {
                Listing before = entry.listing;
                read(entry);
                differs |= !before.equals(entry.listing);
                entry.listing.models().forEach(m -> changed.add(m.name()));
                String name = RepositoryLayout.fileName(entry.path);
                if ((ModelNames.version(name) > 0 || name.equals("configs")) && !layout.isRepository(root, children)) {
                    stamp = null;
                    whole(changed);
                    return;
                }
            }
        }
        if (differs) {
            join();
        }
    }

    private List<Entry> entriesOf(Collection<ModelTree> candidates) {
        List<Entry> found = new ArrayList<>();
        for (ModelTree tree : candidates) {
            Entry entry = byTree.get(tree);
            if (entry != null) {
                found.add(entry);
            }
        }
        return found;
    }

    /** Lists the root; returns whether it is a repository. */
    private boolean list(@Nullable FileStamp now) {
        if (now == null || !now.directory()) {
            return false;
        }
        try {
            children = RepositoryLayout.children(root);
        } catch (IOException e) {
            return false;
        }
        if (!layout.isRepository(root, children)) {
            return false;
        }
        repository = true;
        Set<Path> present = Set.copyOf(children);
        entries.entrySet().removeIf(e -> {
            boolean gone = !present.contains(e.getKey());
            if (gone) {
                trees.remove(e.getValue().tree);
            }
            return gone;
        });
        NavigableSet<String> names = new TreeSet<>();
        children.forEach(c -> names.add(RepositoryLayout.fileName(c)));
        List<Entry> found = new ArrayList<>();
        for (Path child : children) {
            String name = RepositoryLayout.fileName(child);
            if (name.startsWith(".")) {
                continue;
            }
            List<Path> tops = Files.isDirectory(child) ? List.of(child) : files(name, names);
            Entry entry = entries.get(child);
            if (entry != null && !entry.tree.tops().equals(tops)) {
                trees.remove(entry.tree);
                entry = null;
            }
            if (entry == null) {
                entry = new Entry(child, trees.add(tops, 1));
                entries.put(child, entry);
            }
            found.add(entry);
        }
        ordered = found;
        byTree.clear();
        found.forEach(entry -> byTree.put(entry.tree, entry));
        return true;
    }

    /** A file and those that belong to it if it is a model. */
    private List<Path> files(String name, NavigableSet<String> names) {
        String stem = RepositoryLayout.stem(name);
        List<Path> files = new ArrayList<>();
        for (String other : names.tailSet(stem, true)) {
            if (!other.startsWith(stem)) {
                break;
            }
            files.add(root.resolve(other));
        }
        return files;
    }

    private void read(Entry entry) {
        var unused = trees.capture(entry.tree);
        entry.listing = layout.listEntry(root, entry.path);
        int depth = entry.listing.models().isEmpty() ? 1 : ModelTree.WHOLE;
        if (depth != entry.tree.depth()) {
            entry.tree.covers(entry.tree.tops(), depth);
            unused = trees.capture(entry.tree);
        }
    }

    private void join() {
        List<ModelEntry> models = new ArrayList<>();
        List<Problem> problems = new ArrayList<>();
        for (Entry entry : ordered) {
            models.addAll(entry.listing.models());
            problems.addAll(entry.listing.problems());
        }
        models.sort(Comparator.comparing(ModelEntry::name));
        Listing joined = new Listing(List.copyOf(models), List.copyOf(problems), true, children.isEmpty());
        listing = joined.equals(listing) ? listing : joined;
    }

    /** Reads a root that is a model itself, or cannot be read: it has few models, all of which count as changed. */
    private void whole(Set<String> changed) {
        entries.values().forEach(e -> trees.remove(e.tree));
        entries.clear();
        byTree.clear();
        ordered = List.of();
        children = List.of();
        repository = false;
        Listing read = layout.list(root);
        listing = read.equals(listing) ? listing : read;
        read.models().forEach(m -> changed.add(m.name()));
    }
}
