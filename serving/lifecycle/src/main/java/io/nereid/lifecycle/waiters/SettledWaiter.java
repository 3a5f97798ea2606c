// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.waiters;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.lifecycle.state.ModelDependencies;
import io.nereid.lifecycle.state.ModelVersions;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A caller of {@code ServableManager.settled} that waits until versions are available or have failed, and the models
 * that depend on them too. Confined to the manager thread.
 */
final class SettledWaiter {
    private final CompletableFuture<List<ServableState>> future;
    private final List<ModelVersions> asked;
    private final List<Waited> models = new ArrayList<>();

    /**
     * The first model that had not settled at the last check; checked first, since it is likely not to have settled
     * yet.
     */
    private int unsettled;

    SettledWaiter(List<ModelVersions> models, CompletableFuture<List<ServableState>> future) {
        this.future = future;
        this.asked = models;
        for (ModelVersions model : models) {
            List<ManagedVersion> waited = new ArrayList<>();
            for (ManagedVersion v : model.aspired()) {
                waited.add(v.successor == null ? v : v.successor);
            }
            this.models.add(new Waited(model, waited));
        }
    }

    /** Completes the future if all have settled; returns whether it did. */
    boolean check(ModelDependencies dependencies) {
        // Called after every event: with thousands of models, checking all of them each time would be quadratic.
        if (unsettled < models.size() && !models.get(unsettled).settled()) {
            return false;
        }
        for (int i = 0; i < models.size(); i++) {
            if (!models.get(i).settled()) {
                unsettled = i;
                return false;
            }
        }
        if (!dependencies.dependentsSettled(asked)) {
            return false;
        }
        List<ServableState> states = new ArrayList<>();
        for (Waited waited : models) {
            for (ManagedVersion v : waited.versions) {
                ManagedVersion shown = waited.model.shown(v.id.version());
                states.add(shown == null ? v.state() : shown.state());
            }
        }
        future.complete(List.copyOf(states));
        return true;
    }

    /** Returns whether there was a version to wait for. */
    boolean hasVersions() {
        return models.stream().anyMatch(m -> !m.versions.isEmpty());
    }

    void fail(ServingException e) {
        future.completeExceptionally(e);
    }

    private record Waited(ModelVersions model, List<ManagedVersion> versions) {
        boolean settled() {
            if (versions.isEmpty()) {
                return !model.anyAvailable();
            }
            for (ManagedVersion v : versions) {
                if (v.phase == Phase.TRACKED || (v.loads() && !v.cancelled)) {
                    return false;
                }
            }
            return true;
        }
    }
}
