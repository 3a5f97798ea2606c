// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.repository.layout.RepositoryLayout;
import io.nereid.repository.layout.RepositoryLayout.Listing;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.problem.Problem;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scans all roots for models. A scanner for polling remembers what it found, reads only what has changed since, and
 * collects the names of the models that may have changed. Guarded by the source's lock.
 */
public final class ModelScanner {
    private static final Logger LOG = LoggerFactory.getLogger(ModelScanner.class);

    private final List<Path> roots;
    private final RepositoryLayout layout;
    private final @Nullable ModelTrees trees;
    private final List<RootScan> scans = new ArrayList<>();
    private final Map<Path, List<Problem>> problems = new HashMap<>();
    private final Set<String> changed = new TreeSet<>();
    private @Nullable List<Listing> joined;
    private Found found = new Found(new TreeMap<>(), new HashSet<>(), new HashSet<>());

    /**
     * Creates a scanner.
     *
     * @param trees detects changes between polls; null for a scanner that always reads everything
     */
    public ModelScanner(List<Path> roots, RepositoryLayout layout, @Nullable ModelTrees trees) {
        this.roots = List.copyOf(roots);
        this.layout = layout;
        this.trees = trees;
        if (trees != null) {
            for (Path root : roots) {
                scans.add(new RootScan(root, layout, trees));
            }
        }
    }

    /**
     * The result of a scan.
     *
     * @param models by name; more than one where the name is not unique
     * @param unreadable roots that could not be read
     * @param empty roots without any entry
     */
    public record Found(Map<String, List<ModelEntry>> models, Set<Path> unreadable, Set<Path> empty) {
        public boolean has(String name) {
            return models.containsKey(name);
        }

        /** The model of a name; null if it is missing or ambiguous. */
        public @Nullable ModelEntry only(String name) {
            List<ModelEntry> entries = models.get(name);
            return entries == null || entries.size() > 1 ? null : entries.get(0);
        }

        /** The error for loading a model that does not exist. */
        public ServingException notFound(String name) {
            return ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "failed to load '" + name + "', failed to poll from model repository",
                    suggestion(name));
        }

        public String suggestion(String name) {
            String otherwise = models.isEmpty()
                    ? "the repository has no models"
                    : "the repository index lists the models there are";
            return name.length() > 64 ? otherwise : NameSuggestions.didYouMean(name, models.keySet(), otherwise);
        }
    }

    /** Scans all roots. */
    public Found find() {
        List<Listing> listings = new ArrayList<>();
        if (trees == null) {
            roots.forEach(root -> listings.add(layout.list(root)));
            return joined(listings);
        }
        trees.begin();
        for (RootScan scan : scans) {
            scan.scan(changed);
            listings.add(scan.listing());
        }
        if (joined != null && same(joined, listings)) {
            return found;
        }
        Found next = joined(listings);
        joined = listings;
        next.models().forEach((name, entries) -> {
            if (!entries.equals(found.models().get(name))) {
                changed.add(name);
            }
        });
        found = next;
        return next;
    }

    /** Whether these are the same objects: a scan keeps a listing that did not change. */
    private static boolean same(List<Listing> before, List<Listing> now) {
        for (int i = 0; i < now.size(); i++) {
            if (before.get(i) != now.get(i)) {
                return false;
            }
        }
        return true;
    }

    private Found joined(List<Listing> listings) {
        Found all = new Found(new TreeMap<>(), new HashSet<>(), new HashSet<>());
        for (int i = 0; i < roots.size(); i++) {
            Path root = roots.get(i);
            Listing listing = listings.get(i);
            if (!listing.problems().equals(problems.put(root, listing.problems()))) {
                listing.problems().forEach(p -> LOG.warn("{}", p));
            }
            if (!listing.readable()) {
                all.unreadable.add(root);
            }
            if (listing.empty()) {
                all.empty.add(root);
            }
            listing.models()
                    .forEach(m -> all.models
                            .computeIfAbsent(m.name(), n -> new ArrayList<>())
                            .add(m));
        }
        return all;
    }

    /**
     * The names of the models whose files, or whose places, may have changed since the last call, so that they must be
     * read; all names of the latest scan for a scanner that does not detect changes.
     */
    public Set<String> takeChanged(Found latest) {
        if (trees == null) {
            return latest.models().keySet();
        }
        Set<String> taken = new TreeSet<>(changed);
        changed.clear();
        return taken;
    }

    /** The problems of the roots themselves in the latest scan. */
    public List<Problem> problems() {
        List<Problem> all = new ArrayList<>();
        roots.forEach(root -> all.addAll(problems.getOrDefault(root, List.of())));
        return all;
    }
}
