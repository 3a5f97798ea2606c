// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.lifecycle.state.ModelDependencies;
import io.nereid.lifecycle.state.ModelVersions;
import io.nereid.lifecycle.state.ServableRegistry;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.Loader;
import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reconciles a list of aspired versions with the known versions of a model: which versions to add, reload, replace or
 * leave unchanged. Confined to the manager thread.
 */
final class AspiredVersionsReconciler {
    private static final Logger LOG = LoggerFactory.getLogger(AspiredVersionsReconciler.class);

    private final AspiredVersionPolicy policy;
    private final ServableRegistry registry;
    private final ManagerLoop loop;

    AspiredVersionsReconciler(AspiredVersionPolicy policy, ServableRegistry registry, ManagerLoop loop) {
        this.policy = policy;
        this.registry = registry;
        this.loop = loop;
    }

    void reconcile(ModelVersions model, List<AspiredVersion> list, boolean retry) {
        model.atomic = policy.allOrNothing() && model.anyAvailable();
        // New versions become available together, so versions that failed in the last set are tried again with the
        // next.
        boolean again = retry || (model.atomic && list.stream().anyMatch(a -> isNew(model, a)));
        for (AspiredVersion a : list) {
            ManagedVersion v = model.current(a.id().version());
            Loader loader = a.loader();
            if (loader != null) {
                reconcile(model, v, loader, again);
            } else {
                ServingException error = a.error();
                fail(
                        model,
                        v,
                        a,
                        error == null ? "the source has sent neither a loader nor an error" : error.describe());
            }
        }
    }

    private static boolean isNew(ModelVersions model, AspiredVersion a) {
        ManagedVersion v = model.current(a.id().version());
        Loader loader = a.loader();
        if (loader == null) {
            return false;
        }
        String fingerprint = loader.fingerprint();
        return v == null
                || !(v.fingerprint.equals(fingerprint)
                        || v.failedToReload(fingerprint)
                        || (v.successor != null && v.successor.fingerprint.equals(fingerprint)));
    }

    private void reconcile(ModelVersions model, @Nullable ManagedVersion v, Loader loader, boolean retry) {
        if (v == null) {
            loop.add(model, new ManagedVersion(loader.id(), loader));
            return;
        }
        boolean same = v.loader != null && v.fingerprint.equals(loader.fingerprint());
        switch (v.phase) {
            case AVAILABLE -> {
                if (same || adopts(v, loader)) {
                    // The available version is what the source aspires, so a reload with another configuration is
                    // obsolete. A reload because of changed dependencies is not.
                    if (v.successor == null || !v.successor.renewal) {
                        loop.dropSuccessor(model, v);
                    }
                    v.failedReload = null;
                    if (!same || !v.aspired || v.reason != null) {
                        v.aspired = true;
                        v.reason = null;
                        registry.changed(model, v);
                    }
                } else {
                    v.aspired = true;
                    reload(model, v, loader, retry);
                }
            }
            case LOADING, WARMING -> {
                // Another configuration: the running load is cancelled, and a second object is loaded for the same
                // number.
                if (!same) {
                    loop.stopAspiring(model, v);
                    loop.add(model, new ManagedVersion(loader.id(), loader));
                }
            }
            case FAILED -> {
                if (!same || retry) {
                    loop.replace(model, v, new ManagedVersion(loader.id(), loader));
                }
            }
            case TRACKED -> {
                if (!same) {
                    loop.replace(model, v, new ManagedVersion(loader.id(), loader));
                }
            }
            case DRAINING, UNLOADING, GONE -> loop.add(model, new ManagedVersion(loader.id(), loader));
        }
    }

    /** Returns whether the available version has adopted the new configuration without a reload. */
    private static boolean adopts(ManagedVersion v, Loader next) {
        Loader serving = v.loader;
        if (serving == null || !ModelDependencies.of(next).equals(v.dependencies)) {
            return false;
        }
        try {
            if (serving.updateInPlace(next)) {
                v.fingerprint = next.fingerprint();
                return true;
            }
        } catch (RuntimeException e) {
            LOG.warn("{} could not adopt its new configuration; reloading it", v.id, e);
        }
        return false;
    }

    private void reload(ModelVersions model, ManagedVersion v, Loader loader, boolean retry) {
        String fingerprint = loader.fingerprint();
        if (v.successor != null && v.successor.fingerprint.equals(fingerprint)) {
            return;
        }
        if (v.failedToReload(fingerprint) && !retry) {
            loop.dropSuccessor(model, v);
            return;
        }
        loop.reload(model, v, loader, false);
    }

    private void fail(ModelVersions model, @Nullable ManagedVersion v, AspiredVersion a, String reason) {
        if (v == null || v.phase == Phase.TRACKED || v.phase == Phase.FAILED) {
            if (v != null && v.phase == Phase.FAILED && v.loader == null && reason.equals(v.reason)) {
                return;
            }
            ManagedVersion failed = new ManagedVersion(a.id(), null);
            failed.phase = Phase.FAILED;
            failed.reason = reason;
            if (v == null) {
                loop.add(model, failed);
            } else {
                loop.replace(model, v, failed);
            }
        } else if (v.phase == Phase.AVAILABLE) {
            loop.dropSuccessor(model, v);
            v.aspired = true;
            if (!reason.equals(v.reason)) {
                v.reason = reason;
                registry.changed(model, v);
            }
        }
    }
}
