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
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Scans all roots for models. Guarded by the source's lock. */
public final class ModelScanner {
    private static final Logger LOG = LoggerFactory.getLogger(ModelScanner.class);

    private final List<Path> roots;
    private final RepositoryLayout layout;
    private final Map<Path, List<Problem>> problems = new HashMap<>();

    public ModelScanner(List<Path> roots, RepositoryLayout layout) {
        this.roots = List.copyOf(roots);
        this.layout = layout;
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

    public Found find() {
        Found found = new Found(new TreeMap<>(), new HashSet<>(), new HashSet<>());
        for (Path root : roots) {
            Listing listing = layout.list(root);
            if (!listing.problems().equals(problems.put(root, listing.problems()))) {
                listing.problems().forEach(p -> LOG.warn("{}", p));
            }
            if (!listing.readable()) {
                found.unreadable.add(root);
            }
            if (listing.empty()) {
                found.empty.add(root);
            }
            listing.models()
                    .forEach(m -> found.models
                            .computeIfAbsent(m.name(), n -> new ArrayList<>())
                            .add(m));
        }
        return found;
    }

    /** The problems of the roots themselves in the latest scan. */
    public List<Problem> problems() {
        List<Problem> all = new ArrayList<>();
        roots.forEach(root -> all.addAll(problems.getOrDefault(root, List.of())));
        return all;
    }
}
