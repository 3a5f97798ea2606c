// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.Problem.Severity;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Finds missing members of ensembles, and circular dependencies between ensembles. Confined to one thread. */
public final class EnsembleDependencies {
    private final Map<String, StoredModel> models = new LinkedHashMap<>();
    private final Set<String> known;
    private final Set<String> done = new HashSet<>();
    private final List<Problem> problems = new ArrayList<>();

    /** Creates a check of models; {@code known} are the names of all models, valid or not. */
    public EnsembleDependencies(Collection<StoredModel> models, Set<String> known) {
        this.known = known;
        for (StoredModel model : models) {
            this.models.put(model.entry().name(), model);
        }
    }

    public List<Problem> problems() {
        for (StoredModel model : models.values()) {
            Set<String> missing = new TreeSet<>(parts(model));
            missing.removeAll(known);
            if (!missing.isEmpty()) {
                problems.add(new Problem(
                        Severity.WARNING,
                        file(model),
                        0,
                        0,
                        "ensemble '" + model.entry().name() + "' contains models that are not available or ambiguous: "
                                + String.join(", ", missing),
                        "add them, or give the server the repository they are in as well"));
            }
            cycle(model);
        }
        return List.copyOf(problems);
    }

    /** Depth-first search for cycles, without recursion, since a chain of ensembles may be long. */
    private void cycle(StoredModel from) {
        List<String> path = new ArrayList<>();
        List<List<String>> open = new ArrayList<>();
        enter(from.entry().name(), path, open);
        while (!path.isEmpty()) {
            List<String> rest = open.get(open.size() - 1);
            if (rest.isEmpty()) {
                done.add(path.remove(path.size() - 1));
                open.remove(open.size() - 1);
                continue;
            }
            String next = rest.remove(0);
            int before = path.indexOf(next);
            if (before >= 0) {
                List<String> circle = new ArrayList<>(path.subList(before, path.size()));
                circle.add(next);
                StoredModel model = models.get(next);
                problems.add(new Problem(
                        Severity.ERROR,
                        model == null ? file(from) : file(model),
                        0,
                        0,
                        "circular dependency between ensembles: " + String.join(" -> ", circle),
                        "take one of them out of the circle"));
            } else {
                enter(next, path, open);
            }
        }
    }

    private void enter(String name, List<String> path, List<List<String>> open) {
        if (!done.contains(name)) {
            path.add(name);
            open.add(new ArrayList<>(parts(models.get(name))));
        }
    }

    private static Set<String> parts(@Nullable StoredModel model) {
        EnsembleScheduling ensemble = model == null ? null : model.config().ensemble();
        Set<String> parts = new TreeSet<>();
        if (ensemble != null) {
            for (EnsembleStep step : ensemble.steps()) {
                if (!step.model().isEmpty()) {
                    parts.add(step.model());
                }
            }
        }
        return parts;
    }

    private static Path file(StoredModel model) {
        return model.entry().directory().resolve("config.pbtxt");
    }
}
