// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.lifecycle.state.ModelDependencies;
import io.nereid.lifecycle.state.ModelVersions;
import io.nereid.lifecycle.state.ServableRegistry;
import io.nereid.spi.Loader;
import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads and reloads versions with dependencies on other models, such as ensembles, after the changes of these models
 * were published. Confined to the manager thread.
 */
final class DependentReloader {
    private static final Logger LOG = LoggerFactory.getLogger(DependentReloader.class);

    private final ServableRegistry registry;
    private final ModelDependencies dependencies;
    private final ManagerLoop loop;

    DependentReloader(ServableRegistry registry, ModelDependencies dependencies, ManagerLoop loop) {
        this.registry = registry;
        this.dependencies = dependencies;
        this.loop = loop;
    }

    /** Loads versions whose dependencies have settled, and reloads versions whose dependencies have changed. */
    void update() {
        for (ModelVersions model : registry.composed()) {
            for (ManagedVersion v : List.copyOf(model.versions)) {
                if (!v.aspired) {
                    continue;
                }
                renew(model, v);
                ManagedVersion next = v.successor == null ? v : v.successor;
                if (next.phase == Phase.TRACKED) {
                    String circle = dependencies.circle(next);
                    if (circle != null) {
                        next.circular = true;
                        next.basis = dependencies.basis(next);
                        loop.loadFailed(model, next, circle);
                    } else if (next != v && dependencies.settled(next)) {
                        loop.startLoad(model, next);
                    }
                }
            }
            loop.advance(model);
        }
    }

    private void renew(ModelVersions model, ManagedVersion v) {
        boolean serves = v.phase == Phase.AVAILABLE && v.successor == null;
        if (!serves && v.phase != Phase.FAILED) {
            return;
        }
        ManagedVersion stale =
                serves && v.failedReload != null && dependencies.due(v.failedReload) ? v.failedReload : v;
        if (stale.loader == null || !dependencies.due(stale)) {
            return;
        }
        try {
            Loader again = stale.loader.newLoader();
            if (serves) {
                loop.reload(model, v, again, stale == v);
            } else {
                ManagedVersion next = new ManagedVersion(again.id(), again);
                next.renewal = true;
                loop.replace(model, v, next);
            }
        } catch (RuntimeException e) {
            LOG.error("{} cannot be reloaded after a change of its dependencies", v.id, e);
            stale.basis = dependencies.basis(stale);
        }
    }
}
