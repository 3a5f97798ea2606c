// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.LabelRule;
import io.nereid.lifecycle.Manager;
import io.nereid.spi.ModelControl.Label;
import io.nereid.spi.ModelControl.ModelChange;
import io.nereid.spi.ModelControl.ServedModel;
import io.nereid.spi.ModelControl.Share;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * The labels of the models of the list. A label that moves keeps what it stood for until what it shall stand for serves.
 * Confined to the thread that configures.
 */
final class VersionLabels {
    /** So much less than any weight that nothing goes there while there is another target. */
    private static final double HARDLY = 1e-12;

    private final Manager manager;
    private final LabelRule rule;
    private Map<String, Map<String, Label>> wanted = Map.of();
    /** What labels stand for, bridges aside. */
    private final Map<String, Map<String, Label>> held = new HashMap<>();

    private boolean bridged;

    VersionLabels(Manager manager, LabelRule rule) {
        this.manager = manager;
        this.rule = rule;
    }

    /**
     * Refuses a list with a label for a version that neither serves, nor begins to by this list, or stops to by it.
     *
     * @param changes what the list does
     * @throws ServingException FAILED_PRECONDITION, nothing having changed
     */
    void check(List<ServedModel> models, List<ModelChange> changes) {
        Map<String, ModelChange> byModel = new HashMap<>();
        changes.forEach(c -> byModel.put(c.model(), c));
        for (ServedModel model : models) {
            if (model.labels().isEmpty()) {
                continue;
            }
            Set<Long> serving = serving(model.name());
            ModelChange change = byModel.get(model.name());
            if (change != null) {
                change.unload().forEach(serving::remove);
                serving.addAll(change.load());
            }
            rule.check(model.name(), model.labels(), held(model.name()), serving::contains);
        }
    }

    /**
     * These labels are wanted from now on, instead of all that were; what may be in force at once is. Until {@link
     * #settled}, requests for the others go on to the new version when the old one goes before the label has moved.
     */
    void want(List<ServedModel> models) {
        Map<String, Map<String, Label>> next = new HashMap<>();
        models.forEach(m -> next.put(m.name(), m.labels()));
        for (String gone : wanted.keySet()) {
            if (!next.containsKey(gone)) {
                held.remove(gone);
                manager.labels(gone, Map.of());
            }
        }
        wanted = Map.copyOf(next);
        bridged = true;
        wanted.keySet().forEach(this::look);
    }

    /** What the list has loaded serves, or does not. */
    void settled() {
        bridged = false;
        wanted.keySet().forEach(this::look);
    }

    /** Another version of the model serves: its labels may move. */
    void look(String model) {
        Map<String, Label> labels = wanted.get(model);
        if (labels == null) {
            return;
        }
        Set<Long> serving = serving(model);
        Map<String, Label> present = held(model);
        Map<String, Label> next = new HashMap<>();
        Map<String, Label> table = new HashMap<>();
        labels.forEach((name, label) -> {
            Label old = present.get(name);
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

    private Map<String, Label> held(String model) {
        Map<String, Label> own = held.get(model);
        return own == null ? manager.labels(model) : own;
    }

    /** The old one as long as anything of it serves, then the new one. */
    private static Label bridge(Label old, Label next) {
        List<Share> targets = new ArrayList<>(old.targets());
        for (Share share : next.targets()) {
            if (targets.stream().noneMatch(t -> t.version() == share.version())) {
                targets.add(new Share(share.version(), share.weight() * HARDLY));
            }
        }
        return new Label(List.copyOf(targets), old.shadows());
    }

    /** The labels of a model that are not yet in force. */
    List<String> pending(String model) {
        Map<String, Label> present = held(model);
        List<String> pending = new ArrayList<>();
        wanted.getOrDefault(model, Map.of()).forEach((name, label) -> {
            if (!label.equals(present.get(name))) {
                pending.add(name);
            }
        });
        pending.sort(null);
        return pending;
    }

    private boolean due(@Nullable Label old, Label next, LongPredicate serves) {
        if (next.equals(old) || rule == LabelRule.ANY) {
            return true;
        }
        if (old == null) {
            return rule == LabelRule.FIRST_ASSIGNMENT
                    || next.targets().stream().anyMatch(t -> serves.test(t.version()));
        }
        return next.targets().stream().allMatch(t -> serves.test(t.version()) || names(old, t.version()));
    }

    private static boolean names(Label label, long version) {
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
