// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Loader;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What versions need of other models. Confined to the deciding thread. */
final class Dependencies {
    private final Board board;

    Dependencies(Board board) {
        this.board = board;
    }

    /** What is available of the models that a version depends on; equal as long as nothing of it came or went. */
    List<Object> basis(Version v) {
        List<Object> basis = new ArrayList<>();
        for (String name : v.dependencies) {
            basis.add(name);
            Model model = board.find(name);
            if (model != null) {
                for (Version d : model.versions) {
                    if (d.phase == Phase.AVAILABLE && d.live != null) {
                        basis.add(d.live.token);
                    }
                }
            }
        }
        return basis;
    }

    /** Whether a version was loaded, or failed to load, when something else was available of what it depends on. */
    boolean stale(Version v) {
        return v.basis != null && !v.basis.equals(basis(v));
    }

    /** Whether a version should be loaded anew. What failed for a circle can only succeed when there is none any more. */
    boolean due(Version v) {
        return v.circular ? circle(v) == null : stale(v);
    }

    /** Whether everything that a version depends on has settled, so that it can be loaded. */
    boolean settled(Version v) {
        for (String name : v.dependencies) {
            Model model = board.find(name);
            if (model == null) {
                if (v.expectsUnknown) {
                    return false;
                }
            } else if (!settled(model)) {
                return false;
            }
        }
        return true;
    }

    private boolean settled(Model model) {
        for (Version v : model.versions) {
            if (v.aspired
                    && (v.phase == Phase.TRACKED
                            || v.loads()
                            || (v.phase == Phase.AVAILABLE && (v.successor != null || stale(v))))) {
                return false;
            }
        }
        return true;
    }

    /** Whether these models, and all that depend on them, however far off, stand on what there is. */
    boolean dependentsSettled(List<Model> models) {
        Set<String> names = new LinkedHashSet<>();
        models.forEach(m -> names.add(m.name));
        List<Model> composed = board.composed();
        boolean grew = !composed.isEmpty();
        while (grew) {
            grew = false;
            for (Model model : composed) {
                if (model.dependencies().stream().anyMatch(names::contains)) {
                    grew |= names.add(model.name);
                }
            }
        }
        return composed.stream().allMatch(m -> !names.contains(m.name) || settled(m));
    }

    boolean anyUnknown(Version v) {
        return v.dependencies.stream().anyMatch(name -> board.find(name) == null);
    }

    /** The way from a version back to its own model, as a reason not to load it; null when there is none. */
    @Nullable String circle(Version v) {
        List<String> path = new ArrayList<>(List.of(v.id.model()));
        Set<String> seen = new LinkedHashSet<>();
        return leadsBack(v.dependencies, path, seen)
                ? "circular dependency between ensembles: " + String.join(" -> ", path)
                : null;
    }

    private boolean leadsBack(List<String> names, List<String> path, Set<String> seen) {
        for (String name : names) {
            path.add(name);
            if (name.equals(path.get(0))) {
                return true;
            }
            Model model = seen.add(name) ? board.find(name) : null;
            if (model != null && leadsBack(model.dependencies(), path, seen)) {
                return true;
            }
            path.remove(path.size() - 1);
        }
        return false;
    }

    static List<String> of(@Nullable Loader loader) {
        return loader == null ? List.of() : List.copyOf(new LinkedHashSet<>(loader.dependencies()));
    }
}
