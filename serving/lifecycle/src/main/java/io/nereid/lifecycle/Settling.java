// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.ServingException;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Somebody who waits until certain versions serve or have failed, and what depends on them too. Confined to the deciding thread. */
final class Settling {
    private final CompletableFuture<List<ServableState>> future;
    private final List<Model> asked;
    private final List<Waited> models = new ArrayList<>();

    /** The first that had not settled when last looked at, which is likely to be the one that has not yet. */
    private int unsettled;

    Settling(List<Model> models, CompletableFuture<List<ServableState>> future) {
        this.future = future;
        this.asked = models;
        for (Model model : models) {
            List<Version> waited = new ArrayList<>();
            for (Version v : model.aspired()) {
                waited.add(v.successor == null ? v : v.successor);
            }
            this.models.add(new Waited(model, waited));
        }
    }

    /** Completes when it can; true when it has. */
    boolean check(Dependencies dependencies) {
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
            for (Version v : waited.versions) {
                Version shown = waited.model.shown(v.id.version());
                states.add(shown == null ? v.state() : shown.state());
            }
        }
        future.complete(List.copyOf(states));
        return true;
    }

    /** Whether there was a version to wait for. */
    boolean hasVersions() {
        return models.stream().anyMatch(m -> !m.versions.isEmpty());
    }

    void fail(ServingException e) {
        future.completeExceptionally(e);
    }

    private record Waited(Model model, List<Version> versions) {
        boolean settled() {
            if (versions.isEmpty()) {
                return !model.anyAvailable();
            }
            for (Version v : versions) {
                if (v.phase == Phase.TRACKED || (v.loads() && !v.unwanted)) {
                    return false;
                }
            }
            return true;
        }
    }
}
