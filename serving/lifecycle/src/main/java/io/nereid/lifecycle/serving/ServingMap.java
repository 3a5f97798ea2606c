// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.ModelStatus;
import io.nereid.spi.management.VersionLabel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * What request threads see of all models: available versions, states of all versions, and labels. Immutable; the
 * manager replaces it as a whole, so that a reader gets a consistent view with one volatile read.
 *
 * <p>Everything that a request needs is computed when a model or a label changes, so that {@link #find} is one hash
 * lookup and an index, without an allocation: the versions are sorted, and the weights of labels are resolved to
 * available versions ({@link LabelRoute}). The errors are built only when {@link #find} has found nothing.
 *
 * <p>Invariant: the routes of an entry are those of the labels in {@link #labels} for the versions of that entry. A
 * change of either one builds them again, in {@link #with} and {@link #withLabels}. The two methods are called under a
 * lock of the manager ({@code ServableRegistry}), since labels may be set on any thread: otherwise one of two changes
 * from the same map would be lost.
 */
public final class ServingMap {
    public static final ServingMap EMPTY = new ServingMap(new ShardedMap<>(), new ShardedMap<>());

    private final ShardedMap<Entry> entries;

    /** Also of unknown models: labels may be set before a model is loaded and remain after it. */
    private final ShardedMap<Map<String, VersionLabel>> labels;

    private ServingMap(ShardedMap<Entry> entries, ShardedMap<Map<String, VersionLabel>> labels) {
        this.entries = entries;
        this.labels = labels;
    }

    /** Returns this map with some entries replaced, or removed if null; labels are kept. */
    public ServingMap with(Map<String, @Nullable Entry> changes) {
        Map<String, @Nullable Entry> routed = new HashMap<>();
        changes.forEach((name, entry) -> routed.put(name, entry == null ? null : entry.routed(labels(name))));
        return new ServingMap(entries.with(routed), labels);
    }

    /** Returns this map with other labels for one model. */
    public ServingMap withLabels(String model, Map<String, VersionLabel> next) {
        Map<String, @Nullable Map<String, VersionLabel>> change = new HashMap<>();
        change.put(model, next.isEmpty() ? null : next);
        Entry entry = entries.get(model);
        return new ServingMap(
                entry == null ? entries : entries.with(Map.of(model, entry.routed(next))), labels.with(change));
    }

    public Map<String, VersionLabel> labels(String model) {
        Map<String, VersionLabel> found = labels.get(model);
        return found == null ? Map.of() : found;
    }

    public @Nullable Entry entry(String model) {
        return entries.get(model);
    }

    /** Returns the available version that a reference selects, or null. */
    public @Nullable LiveServable find(ModelRef ref) {
        Entry entry = entries.get(ref.model());
        if (entry == null) {
            return null;
        }
        if (ref.label() != null) {
            LabelRoute route = entry.routes.get(ref.label());
            return route == null ? null : route.target();
        }
        return ref.version() == ModelRef.ANY ? entry.latest() : entry.live(ref.version());
    }

    /** Returns the shadow version that receives a copy of a request with a label, or null. */
    public @Nullable LiveServable shadow(ModelRef ref) {
        Entry entry = entries.get(ref.model());
        LabelRoute route = entry == null || ref.label() == null ? null : entry.routes.get(ref.label());
        return route == null ? null : route.shadow();
    }

    /** Returns whether a reference selects a known version, available or not. */
    public boolean known(ModelRef ref) {
        Entry entry = entries.get(ref.model());
        if (entry == null) {
            return false;
        }
        if (ref.label() != null) {
            LabelRoute route = entry.routes.get(ref.label());
            return route != null && route.label.targets().stream().anyMatch(s -> entry.state(s.version()) != null);
        }
        return ref.version() == ModelRef.ANY || entry.state(ref.version()) != null;
    }

    /** Returns the error for a reference for which {@link #find} returns null. */
    public ServingException missing(ModelRef ref) {
        String model = ref.model();
        Entry entry = entries.get(model);
        if (ref.label() != null && (entry != null || labels(model).containsKey(ref.label()))) {
            return missingLabel(model, entry, ref.label());
        }
        if (entry == null) {
            return unknown(model);
        }
        if (ref.version() == ModelRef.ANY) {
            return ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Request for unknown model: '" + model + "' has no available versions",
                    entry.describe());
        }
        ServableState state = entry.state(ref.version());
        String who = "Request for unknown model: '" + model + "' version " + ref.version();
        return state == null
                ? ServingException.of(ErrorCode.NOT_FOUND, who + " is not found", entry.describe())
                : ServingException.of(ErrorCode.UNAVAILABLE, who + " is not at ready state", Entry.describe(state));
    }

    private ServingException missingLabel(String model, @Nullable Entry entry, String name) {
        Map<String, VersionLabel> known = labels(model);
        VersionLabel label = known.get(name);
        if (label == null) {
            return ServingException.invalidArgument(
                    "Unrecognized servable version label: " + name,
                    known.isEmpty()
                            ? "model '" + model + "' has no labels; name a version, or none"
                            : NameSuggestions.didYouMean(
                                    name,
                                    known.keySet(),
                                    "the labels of '" + model + "' are " + new TreeSet<>(known.keySet())));
        }
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                "Servable not found for request: Specific(" + model + ", "
                        + label.targets().get(0).version() + ")",
                entry == null ? "it has no versions" : entry.describe());
    }

    /** Returns the error for an unknown model. */
    ServingException unknown(String model) {
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                "Request for unknown model: '" + model + "' is not found",
                NameSuggestions.didYouMean(model, names(), "the repository index lists the models there are"));
    }

    private List<String> names() {
        return entries.all().stream().map(Map.Entry::getKey).sorted().toList();
    }

    public List<ModelStatus> index() {
        return entries.all().stream()
                .sorted(Map.Entry.comparingByKey())
                .map(e -> new ModelStatus(e.getKey(), e.getValue().states(), labels(e.getKey())))
                .toList();
    }

    public boolean ready() {
        return entries.allMatch(Entry::ready);
    }

    /**
     * One model. Immutable.
     *
     * @param versions the available versions, in descending order
     * @param lives their servables, in the same order
     * @param states the state of each known version, in descending order
     * @param ready whether the model is ready, see {@code ServableManager.ready}
     * @param routes the routes of its labels, by label
     */
    public record Entry(
            List<Long> versions,
            List<LiveServable> lives,
            List<ServableState> states,
            boolean ready,
            Map<String, LabelRoute> routes) {
        /** Returns this model with other labels. */
        Entry routed(Map<String, VersionLabel> labels) {
            if (labels.isEmpty() && routes.isEmpty()) {
                return this;
            }
            Map<String, LabelRoute> next = new HashMap<>();
            labels.forEach((name, label) -> next.put(name, new LabelRoute(label, this)));
            return new Entry(versions, lives, states, ready, Map.copyOf(next));
        }

        @Nullable LiveServable latest() {
            return lives.isEmpty() ? null : lives.get(0);
        }

        public @Nullable LiveServable live(long version) {
            // A search through a list: a model has a few available versions, for which it is as fast as a map.
            for (int i = 0; i < lives.size(); i++) {
                if (versions.get(i) == version) {
                    return lives.get(i);
                }
            }
            return null;
        }

        @Nullable ServableState state(long version) {
            for (ServableState state : states) {
                if (state.id().version() == version) {
                    return state;
                }
            }
            return null;
        }

        private String describe() {
            List<String> texts = new ArrayList<>();
            for (ServableState state : states) {
                texts.add(describe(state));
            }
            return texts.isEmpty() ? "it has no versions" : String.join("; ", texts);
        }

        private static String describe(ServableState state) {
            String text = "version " + state.id().version() + " is "
                    + state.phase().name().toLowerCase(Locale.ROOT);
            if (state.phase() == Phase.FAILED) {
                text = "version " + state.id().version() + " failed";
            }
            if (state.reason() != null && state.phase() != Phase.AVAILABLE) {
                text += ": " + state.reason();
            }
            return switch (state.phase()) {
                case TRACKED, LOADING, WARMING -> text + "; try again when it is available";
                case AVAILABLE -> text;
                case DRAINING, UNLOADING, GONE -> text + "; load the model to use it";
                case FAILED -> text + "; fix the cause and load the model again";
            };
        }
    }
}
