// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.base.Suggestions;
import io.nereid.spi.ModelControl.ModelStatus;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What readers see of all models: who serves, and how every version stands. Immutable. */
final class ServingMap {
    static final ServingMap EMPTY = new ServingMap(Map.of());

    private final Map<String, Entry> entries;

    private ServingMap(Map<String, Entry> entries) {
        this.entries = entries;
    }

    /** This map with some entries replaced, or removed where null. */
    ServingMap with(Map<String, @Nullable Entry> changes) {
        Map<String, Entry> next = new HashMap<>(entries);
        changes.forEach((name, entry) -> {
            if (entry == null) {
                next.remove(name);
            } else {
                next.put(name, entry);
            }
        });
        return new ServingMap(next);
    }

    @Nullable Entry entry(String model) {
        return entries.get(model);
    }

    /** The version that a reference means, if it serves. */
    @Nullable Live find(ModelRef ref) {
        Entry entry = entries.get(ref.model());
        if (entry == null || ref.label() != null) {
            return null;
        }
        return ref.version() == ModelRef.ANY ? entry.latest() : entry.live(ref.version());
    }

    /** Why {@link #find} found nothing. */
    ServingException missing(ModelRef ref) {
        String model = ref.model();
        Entry entry = entries.get(model);
        if (entry == null) {
            return unknown(model);
        }
        if (ref.label() != null) {
            return ServingException.of(
                    Code.NOT_FOUND,
                    "Request for unknown model: '" + model + "' label '" + ref.label() + "' is not found",
                    "name a version; " + entry.describe());
        }
        if (ref.version() == ModelRef.ANY) {
            return ServingException.of(
                    Code.NOT_FOUND,
                    "Request for unknown model: '" + model + "' has no available versions",
                    entry.describe());
        }
        ServableState state = entry.state(ref.version());
        String who = "Request for unknown model: '" + model + "' version " + ref.version();
        return state == null
                ? ServingException.of(Code.NOT_FOUND, who + " is not found", entry.describe())
                : ServingException.of(Code.UNAVAILABLE, who + " is not at ready state", Entry.describe(state));
    }

    /** The refusal of a model that nobody knows. */
    ServingException unknown(String model) {
        return ServingException.of(
                Code.NOT_FOUND,
                "Request for unknown model: '" + model + "' is not found",
                Suggestions.didYouMean(model, entries.keySet(), "the repository index lists the models there are"));
    }

    List<ModelStatus> index() {
        return entries.entrySet().stream()
                .sorted(Map.Entry.comparingByKey())
                .map(e -> new ModelStatus(e.getKey(), e.getValue().states()))
                .toList();
    }

    boolean ready() {
        return entries.values().stream().allMatch(Entry::ready);
    }

    /**
     * One model. Immutable.
     *
     * @param versions those that serve, by descending version
     * @param lives theirs, in the same order
     * @param states one for every known version, by descending version
     * @param ready see {@link Manager#ready()}
     */
    record Entry(List<Long> versions, List<Live> lives, List<ServableState> states, boolean ready) {
        @Nullable Live latest() {
            return lives.isEmpty() ? null : lives.get(0);
        }

        @Nullable Live live(long version) {
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
                case FAILED -> text + "; mend the cause and load the model again";
            };
        }
    }
}
