// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.polling.ModelScanner.Found;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** The members of each ensemble, as last read. Guarded by the source's lock. */
public final class EnsembleMembership {
    private final Map<String, List<String>> members = new HashMap<>();
    private long changes;
    private @Nullable Inputs inputs;

    public void note(StoredModel model) {
        EnsembleScheduling ensemble = model.config().ensemble();
        if (ensemble == null) {
            forget(model.entry().name());
        } else {
            List<String> now = ensemble.steps().stream()
                    .map(EnsembleStep::model)
                    .distinct()
                    .toList();
            if (!now.equals(members.put(model.entry().name(), now))) {
                changes++;
            }
        }
    }

    void forget(String name) {
        if (members.remove(name) != null) {
            changes++;
        }
    }

    /**
     * What decides about the members of ensembles.
     *
     * @param overridden models loaded with an override, which need not be in the repository
     * @param changes number of changes of the members of ensembles
     */
    private record Inputs(Found found, Set<String> overridden, long changes) {}

    /**
     * The ensembles to read although their own files did not change: all of them, when the models that there are have
     * changed since the last call, or the members of an ensemble.
     *
     * @param overridden models loaded with an override, which need not be in the repository
     */
    public Set<String> affected(Found found, Set<String> overridden) {
        Inputs before = inputs;
        inputs = new Inputs(found, Set.copyOf(overridden), changes);
        boolean same = before != null && before.found == found && before.equals(inputs);
        return same ? Set.of() : Set.copyOf(members.keySet());
    }

    /** The models of an ensemble's steps. */
    public List<String> of(String name) {
        return members.getOrDefault(name, List.of());
    }

    /** All direct and indirect members of an ensemble, without itself. */
    public Set<String> closure(String name) {
        Set<String> closure = new LinkedHashSet<>();
        gather(name, closure);
        closure.remove(name);
        return closure;
    }

    private void gather(String name, Set<String> into) {
        for (String member : of(name)) {
            if (into.add(member)) {
                gather(member, into);
            }
        }
    }

    /** Adds an error to an ensemble with a circular dependency, or with members that are missing or ambiguous. */
    public StoredModel checked(StoredModel model, Predicate<String> available) {
        String name = model.entry().name();
        List<String> path = new ArrayList<>(List.of(name));
        if (leadsBack(name, path, new TreeSet<>())) {
            return model.withError(
                    "circular dependency between ensembles: " + String.join(" -> ", path),
                    "an ensemble cannot contain itself");
        }
        List<String> lacking = of(name).stream()
                .filter(m -> !m.isEmpty() && !available.test(m))
                .toList();
        if (lacking.isEmpty()) {
            return model;
        }
        return model.withError(
                "ensemble '" + name + "' contains models that are not available or ambiguous: "
                        + String.join(", ", lacking),
                "put them into the repository, each once");
    }

    private boolean leadsBack(String from, List<String> path, Set<String> seen) {
        for (String member : of(from)) {
            path.add(member);
            if (member.equals(path.get(0)) || (seen.add(member) && leadsBack(member, path, seen))) {
                return true;
            }
            path.remove(path.size() - 1);
        }
        return false;
    }

    /** The names in topological order: each ensemble after its members. */
    public List<String> membersFirst(Collection<String> names) {
        Set<String> ordered = new LinkedHashSet<>();
        Set<String> entered = new TreeSet<>();
        for (String name : names) {
            enter(name, entered, ordered);
        }
        ordered.retainAll(new LinkedHashSet<>(names));
        return List.copyOf(ordered);
    }

    private void enter(String name, Set<String> entered, Set<String> ordered) {
        if (entered.add(name)) {
            for (String member : of(name)) {
                enter(member, entered, ordered);
            }
            ordered.add(name);
        }
    }

    /** The first of the given ensembles that has the model as a direct or indirect member, or null. */
    public @Nullable String user(String model, Collection<String> among) {
        for (String name : among) {
            if (closure(name).contains(model)) {
                return name;
            }
        }
        return null;
    }
}
