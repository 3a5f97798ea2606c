// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.ServableManager;
import io.nereid.lifecycle.policy.LabelAssignmentPolicy;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * The version labels of the models of the list. A moving label keeps routing to its old version until the new one is
 * available. Confined to the thread that applies the list.
 */
final class VersionLabels {
    /** A factor for weights so small that a target with it gets requests only when no other target is available. */
    private static final double NEGLIGIBLE = 1e-12;

    private final ServableManager manager;
    private final LabelAssignmentPolicy rule;
    private Map<String, Map<String, VersionLabel>> desired = Map.of();
    /** The current meaning of the labels, without fallbacks to their new versions. */
    private final Map<String, Map<String, VersionLabel>> held = new HashMap<>();

    private boolean bridged;

    VersionLabels(ServableManager manager, LabelAssignmentPolicy rule) {
        this.manager = manager;
        this.rule = rule;
    }

    /**
     * Rejects a list with a label for a version that is neither available nor loaded by this list, or that this list
     * unloads.
     *
     * @param changes the changes that the list makes
     * @throws ServingException FAILED_PRECONDITION; nothing has changed then
     */
    void check(List<ModelListEntry> models, List<ModelListChange> changes) {
        Map<String, ModelListChange> byModel = new HashMap<>();
        changes.forEach(c -> byModel.put(c.model(), c));
        for (ModelListEntry model : models) {
            if (model.labels().isEmpty()) {
                continue;
            }
            Set<Long> serving = serving(model.name());
            ModelListChange change = byModel.get(model.name());
            if (change != null) {
                change.unload().forEach(serving::remove);
                serving.addAll(change.load());
            }
            rule.check(model.name(), model.labels(), held(model.name()), serving::contains);
        }
    }

    /**
     * Sets the desired labels, instead of all previous ones, and applies those that can take effect at once. Until
     * {@link #settled}, requests for the other labels fall back to the new version when the old one is unloaded before
     * the label has moved.
     */
    void assign(List<ModelListEntry> models) {
        Map<String, Map<String, VersionLabel>> next = new HashMap<>();
        models.forEach(m -> next.put(m.name(), m.labels()));
        for (String gone : desired.keySet()) {
            if (!next.containsKey(gone)) {
                held.remove(gone);
                manager.labels(gone, Map.of());
            }
        }
        desired = Map.copyOf(next);
        bridged = true;
        desired.keySet().forEach(this::update);
    }

    /** The versions that the list has loaded are available or have failed: removes the fallbacks. */
    void settled() {
        bridged = false;
        desired.keySet().forEach(this::update);
    }

    /** Updates the labels of a model after another of its versions has become available. */
    void update(String model) {
        Map<String, VersionLabel> labels = desired.get(model);
        if (labels == null) {
            return;
        }
        Set<Long> serving = serving(model);
        Map<String, VersionLabel> present = held(model);
        Map<String, VersionLabel> next = new HashMap<>();
        Map<String, VersionLabel> table = new HashMap<>();
        labels.forEach((name, label) -> {
            VersionLabel old = present.get(name);
            if (due(old, label, serving::contains)) {
                next.put(name, label);
                table.put(name, label);
            } else if (old != null) {
                next.put(name, old);
                table.put(name, bridged ? bridge(old, label) : old);
            }
        });
        held.put(model, Map.copyOf(next));
        if (!table.equals(manager.labels(model))) {
            manager.labels(model, table);
        }
    }

    private Map<String, VersionLabel> held(String model) {
        Map<String, VersionLabel> own = held.get(model);
        return own == null ? manager.labels(model) : own;
    }

    /** Routes to the old label's targets as long as one of them is available, then to the new ones. */
    private static VersionLabel bridge(VersionLabel old, VersionLabel next) {
        List<WeightedVersion> targets = new ArrayList<>(old.targets());
        for (WeightedVersion share : next.targets()) {
            if (targets.stream().noneMatch(t -> t.version() == share.version())) {
                targets.add(new WeightedVersion(share.version(), share.weight() * NEGLIGIBLE));
            }
        }
        return new VersionLabel(List.copyOf(targets), old.shadows());
    }

    /** The labels of a model that have not taken effect yet. */
    List<String> pending(String model) {
        Map<String, VersionLabel> present = held(model);
        List<String> pending = new ArrayList<>();
        desired.getOrDefault(model, Map.of()).forEach((name, label) -> {
            if (!label.equals(present.get(name))) {
                pending.add(name);
            }
        });
        pending.sort(null);
        return pending;
    }

    private boolean due(@Nullable VersionLabel old, VersionLabel next, LongPredicate serves) {
        if (next.equals(old) || rule == LabelAssignmentPolicy.ANY) {
            return true;
        }
        if (old == null) {
            return rule == LabelAssignmentPolicy.FIRST_ASSIGNMENT
                    || next.targets().stream().anyMatch(t -> serves.test(t.version()));
        }
        return next.targets().stream().allMatch(t -> serves.test(t.version()) || names(old, t.version()));
    }

    private static boolean names(VersionLabel label, long version) {
        return label.targets().stream().anyMatch(t -> t.version() == version);
    }

    private Set<Long> serving(String model) {
        Set<Long> serving = new HashSet<>();
        for (ServableState state : manager.states(model)) {
            if (state.phase() == Phase.AVAILABLE) {
                serving.add(state.id().version());
            }
        }
        return serving;
    }
}
