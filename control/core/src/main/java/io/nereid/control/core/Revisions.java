// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import io.nereid.control.core.Observed.Phase;
import io.nereid.control.core.Observed.State;
import io.nereid.control.core.Observed.Traffic;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Workload.Component;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The revisions of one component, old ones and those that this plan adds. Confined to one call of the planner. */
final class Revisions {
    /** Unused revisions that are kept beside those with a part in the traffic. */
    private static final int SPARE = 5;

    private static final State NOTHING = new State(Phase.PENDING, 0, 0, null, Traffic.NONE);
    private static final Pattern NUMBER = Pattern.compile("-[0-9]{5,}$");

    private final Component component;
    private final Map<String, Revision> all = new LinkedHashMap<>();
    private final Map<String, State> states;
    private final boolean frozen;
    private final Instant now;
    private final List<Event> events;

    /**
     * Those that are there.
     *
     * @param frozen whether a changed template makes no new revision
     */
    Revisions(Component component, Observed observed, boolean frozen, Instant now, List<Event> events) {
        this.component = component;
        for (Revision one : observed.revisions()) {
            if (one.component() == component) {
                all.put(one.name(), one);
            }
        }
        this.states = observed.workloads();
        this.frozen = frozen;
        this.now = now;
        this.events = events;
    }

    /** The revision of this draft: the newest of its name if that is the same, else a new one; null when it cannot run. */
    @Nullable Revision current(Draft draft) {
        Revision newest = newest(draft.base());
        if (draft.template() == null || (frozen && newest != null)) {
            return newest;
        }
        String fingerprint = draft.fingerprint();
        Revision revision;
        if (newest != null && newest.fingerprint().equals(fingerprint)) {
            Workload workload = WorkloadTrees.named(draft.template(), newest.name());
            revision = new Revision(
                    component,
                    newest.number(),
                    newest.name(),
                    fingerprint,
                    WorkloadTrees.write(workload),
                    newest.created());
        } else {
            int number = all.values().stream().mapToInt(Revision::number).max().orElse(0) + 1;
            String name = String.format(Locale.ROOT, "%s-%05d", draft.base(), number);
            Workload workload = WorkloadTrees.named(draft.template(), name);
            revision = new Revision(component, number, name, fingerprint, WorkloadTrees.write(workload), now);
            events.add(new Event("Normal", "RevisionCreated", "Created revision " + name));
        }
        all.put(revision.name(), revision);
        return revision;
    }

    private @Nullable Revision newest(String base) {
        Revision found = null;
        for (Revision one : all.values()) {
            if (base(one.name()).equals(base) && (found == null || one.number() > found.number())) {
                found = one;
            }
        }
        return found;
    }

    /** The newest revision that answers, of other names than these; null for none. */
    @Nullable Revision newestReady(Set<String> otherBases) {
        Revision found = null;
        for (Revision one : all.values()) {
            if (isReady(one.name())
                    && !otherBases.contains(base(one.name()))
                    && (found == null || one.number() > found.number())) {
                found = one;
            }
        }
        return found;
    }

    static String base(String revision) {
        return NUMBER.matcher(revision).replaceFirst("");
    }

    /** The name if there is such a revision, else nothing. */
    String known(String name) {
        return all.containsKey(name) ? name : "";
    }

    State state(String name) {
        return states.getOrDefault(name, NOTHING);
    }

    boolean isReady(String name) {
        Phase phase = state(name).phase();
        return phase == Phase.READY || phase == Phase.STANDBY;
    }

    Workload workload(String name) {
        Revision revision = all.get(name);
        if (revision == null) {
            throw new IllegalStateException("no revision " + name);
        }
        return WorkloadTrees.read(revision.workload());
    }

    /** Those in use and the last few others, oldest first. */
    List<Revision> kept(Set<String> used) {
        List<Revision> sorted = new ArrayList<>(all.values());
        sorted.sort((one, other) -> Integer.compare(one.number(), other.number()));
        List<Revision> kept = new ArrayList<>();
        for (int i = 0; i < sorted.size(); i++) {
            if (used.contains(sorted.get(i).name()) || i >= sorted.size() - SPARE) {
                kept.add(sorted.get(i));
            }
        }
        return List.copyOf(kept);
    }
}
