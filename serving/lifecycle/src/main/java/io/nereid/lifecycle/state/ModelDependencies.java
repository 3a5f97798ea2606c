// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.state;

import io.nereid.spi.Loader;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The dependencies of versions on other models: an ensemble is built on the versions of its composing models that are
 * available when it loads (its <em>basis</em>), and must be reloaded when these change. Confined to the manager thread.
 */
public final class ModelDependencies {
    private final ServableRegistry registry;

    public ModelDependencies(ServableRegistry registry) {
        this.registry = registry;
    }

    /**
     * Returns the available versions of the models that a version depends on; equal as long as none of them changes.
     */
    public List<Object> basis(ManagedVersion v) {
        List<Object> basis = new ArrayList<>();
        for (String name : v.dependencies) {
            basis.add(name);
            ModelVersions model = registry.find(name);
            if (model != null) {
                for (ManagedVersion d : model.versions) {
                    if (d.phase == Phase.AVAILABLE && d.live != null) {
                        basis.add(d.live.token);
                    }
                }
            }
        }
        return basis;
    }

    /** Returns whether the available dependencies have changed since a version was loaded or failed to load. */
    boolean stale(ManagedVersion v) {
        return v.basis != null && !v.basis.equals(basis(v));
    }

    /**
     * Returns whether a version should be reloaded. One that failed for a circle is reloaded only after that is gone.
     */
    public boolean due(ManagedVersion v) {
        return v.circular ? circle(v) == null : stale(v);
    }

    /** Returns whether all dependencies of a version have settled, so that it can be loaded. */
    public boolean settled(ManagedVersion v) {
        for (String name : v.dependencies) {
            ModelVersions model = registry.find(name);
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

    private boolean settled(ModelVersions model) {
        for (ManagedVersion v : model.versions) {
            if (v.aspired
                    && (v.phase == Phase.TRACKED
                            || v.loads()
                            || (v.phase == Phase.AVAILABLE && (v.successor != null || stale(v))))) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether all models that depend on these, directly or indirectly, have settled. */
    public boolean dependentsSettled(List<ModelVersions> models) {
        Set<String> names = new LinkedHashSet<>();
        models.forEach(m -> names.add(m.name));
        List<ModelVersions> composed = registry.composed();
        boolean grew = !composed.isEmpty();
        while (grew) {
            grew = false;
            for (ModelVersions model : composed) {
                if (model.dependencies().stream().anyMatch(names::contains)) {
                    grew |= names.add(model.name);
                }
            }
        }
        return composed.stream().allMatch(m -> !names.contains(m.name) || settled(m));
    }

    public boolean anyUnknown(ManagedVersion v) {
        return v.dependencies.stream().anyMatch(name -> registry.find(name) == null);
    }

    /** Returns the path from a version back to its own model as the reason of a failure; null if there is no circle. */
    public @Nullable String circle(ManagedVersion v) {
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
            ModelVersions model = seen.add(name) ? registry.find(name) : null;
            if (model != null && leadsBack(model.dependencies(), path, seen)) {
                return true;
            }
            path.remove(path.size() - 1);
        }
        return false;
    }

    public static List<String> of(@Nullable Loader loader) {
        return loader == null ? List.of() : List.copyOf(new LinkedHashSet<>(loader.dependencies()));
    }
}
