// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.rollout;

import io.nereid.control.core.ObservedState;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Plan.Event;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.WorkloadCodec;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.component.WorkloadPlan;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The revision history of one component: the revisions of the last plan and those that this plan adds. Confined to one
 * call of the planner.
 */
public final class RevisionHistory {
    /** The number of unused revisions that are kept for rollback, in addition to those with a share of the traffic. */
    private static final int SPARE = 5;

    private static final WorkloadState NOTHING = new WorkloadState(Phase.PENDING, 0, 0, null, Traffic.NONE);
    private static final Pattern NUMBER = Pattern.compile("-[0-9]{5,}$");

    private final Component component;
    private final Map<String, Revision> all = new LinkedHashMap<>();
    private final Map<String, WorkloadState> states;
    private final boolean frozen;
    private final Instant now;
    private final List<Event> events;

    /**
     * Reads the history from the observed state.
     *
     * @param frozen whether a changed template must not make a new revision
     */
    public RevisionHistory(
            Component component, ObservedState observed, boolean frozen, Instant now, List<Event> events) {
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

    /**
     * The revision of a component's plan: the newest one of its name if the fingerprint is the same, else a new one.
     * For a plan with a problem it is the newest one, or null if there is none.
     */
    @Nullable Revision current(WorkloadPlan plan) {
        Revision newest = newest(plan.base());
        if (plan.template() == null || (frozen && newest != null)) {
            return newest;
        }
        String fingerprint = plan.fingerprint();
        Revision revision;
        if (newest != null && newest.fingerprint().equals(fingerprint)) {
            Workload workload = WorkloadCodec.named(plan.template(), newest.name());
            revision = new Revision(
                    component,
                    newest.number(),
                    newest.name(),
                    fingerprint,
                    WorkloadCodec.write(workload),
                    newest.created());
        } else {
            int number = all.values().stream().mapToInt(Revision::number).max().orElse(0) + 1;
            String name = String.format(Locale.ROOT, "%s-%05d", plan.base(), number);
            Workload workload = WorkloadCodec.named(plan.template(), name);
            revision = new Revision(component, number, name, fingerprint, WorkloadCodec.write(workload), now);
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

    /** The newest ready revision whose base name is not among these; null for none. */
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

    /** The name if such a revision exists, else the empty string. */
    String known(String name) {
        return all.containsKey(name) ? name : "";
    }

    WorkloadState state(String name) {
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
        return WorkloadCodec.read(revision.workload());
    }

    /** The revisions in use and the last few others, oldest first. */
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
