// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.lifecycle.state.ModelVersions;
import io.nereid.lifecycle.state.ServableRegistry;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.List;

/**
 * The version transition: makes loaded versions available, one by one or all new versions of a model together. In the
 * second case a loaded version is <em>staged</em> until the others have loaded too; if one of them fails, all staged
 * versions are unloaded and the old ones stay available. Confined to the manager thread.
 *
 * <p>A staged version is in phase WARMING: it has a servable and its memory, but no entry in the serving map. Three
 * relations between versions matter here. A reload is the {@code successor} of the available version with the same
 * number, which is its {@code predecessor}; until the reload ends or is cancelled, only the predecessor is in
 * {@code ModelVersions.versions}. A {@code renewal} is a reload because of changed dependencies; it is never staged,
 * because the versions that the old one was built on are already gone. A {@code failedReload} is kept at the version
 * that stays available, so that the same configuration is not loaded again and again.
 */
final class VersionTransition {
    private final ServableRegistry registry;
    private final ManagerLoop loop;

    VersionTransition(ServableRegistry registry, ManagerLoop loop) {
        this.registry = registry;
        this.loop = loop;
    }

    /** Returns whether versions that are no longer aspired must stay, because a reload is in progress or has failed. */
    static boolean reloadPending(ModelVersions model) {
        return model.versions.stream()
                .anyMatch(v -> v.aspired && ((v.successor != null && !v.successor.renewal) || v.failedReload != null));
    }

    /** Makes a loaded version available, and drains its predecessor in a reload. */
    void makeAvailable(ModelVersions model, ManagedVersion v) {
        v.staged = false;
        ManagedVersion predecessor = v.predecessor;
        if (predecessor != null) {
            // The links are cut before the drain starts, because startDrain() would cancel a successor.
            predecessor.successor = null;
            predecessor.aspired = false;
            v.predecessor = null;
            // A renewal has the configuration of its predecessor, so a newer configuration that failed still failed.
            if (v.renewal && predecessor.failedReload != null) {
                v.failedReload = predecessor.failedReload;
                v.reason = predecessor.reason;
            }
            model.versions.add(v);
            // The drain is only recorded here. It begins after the map with the new version is published, so that
            // every request finds one of the two.
            loop.startDrain(model, predecessor);
        }
        v.phase = Phase.AVAILABLE;
        registry.changed(model, v);
    }

    /** Records the failure of a reload at the version that stays available. */
    void reject(ModelVersions model, ManagedVersion serving, ManagedVersion successor, String reason) {
        serving.failedReload = successor;
        serving.reason = reason;
        registry.changed(model, serving);
    }

    /** When no load of a model is in progress: makes its staged versions available, or drops them if a load failed. */
    void finishStaged(ModelVersions model) {
        List<ManagedVersion> staged = new ArrayList<>();
        // The decision is made only when every aspired version is staged, available or failed.
        String failure = null;
        for (ManagedVersion aspired : model.aspired()) {
            ManagedVersion v = aspired.successor == null || aspired.successor.renewal ? aspired : aspired.successor;
            if (v.staged) {
                staged.add(v);
            } else if (v.phase == Phase.TRACKED || v.loads()) {
                // Still undecided; the end of its load calls this method again.
                return;
            } else if (v.phase == Phase.FAILED || v.failedReload != null) {
                failure = failure == null ? "version " + v.id.version() + ": " + v.reason : failure;
            }
        }
        for (ManagedVersion v : staged) {
            if (failure == null) {
                makeAvailable(model, v);
            } else {
                drop(model, v, "not made available because another new version failed: " + failure);
            }
        }
    }

    /** Unloads a staged version and replaces it by a failed one, so that the failure is visible. */
    private void drop(ModelVersions model, ManagedVersion v, String reason) {
        ManagedVersion predecessor = v.predecessor;
        v.staged = false;
        v.aspired = false;
        v.cancelled = true;
        // Two objects from here on: `v` is unloaded, while `failed` shows the reason under the same number.
        ManagedVersion failed = new ManagedVersion(v.id, v.loader);
        failed.phase = Phase.FAILED;
        failed.reason = reason;
        failed.basis = v.basis;
        if (predecessor != null) {
            predecessor.successor = null;
            v.predecessor = null;
            // Before its predecessor, which represents the number in the index; see ModelVersions.shown().
            model.versions.add(0, v);
            loop.startUnload(model, v);
            reject(model, predecessor, failed, "reload failed: " + reason);
        } else {
            loop.startUnload(model, v);
            loop.add(model, failed);
        }
    }
}
