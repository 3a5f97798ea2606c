// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.List;

/** How loaded versions come to be seen: one by one, or all that is new of a model together. Confined to the deciding thread. */
final class Takeover {
    private final Board board;
    private final Decider decider;

    Takeover(Board board, Decider decider) {
        this.board = board;
        this.decider = decider;
    }

    /** Whether unwanted versions must stay, since what should follow them has not loaded. */
    static boolean undecided(Model model) {
        return model.versions.stream()
                .anyMatch(v -> v.aspired && ((v.successor != null && !v.successor.renewal) || v.refused != null));
    }

    /** A version serves from now on; the one that it follows does not. */
    void show(Model model, Version v) {
        v.staged = false;
        Version predecessor = v.predecessor;
        if (predecessor != null) {
            predecessor.successor = null;
            predecessor.aspired = false;
            v.predecessor = null;
            if (v.renewal && predecessor.refused != null) {
                v.refused = predecessor.refused;
                v.reason = predecessor.reason;
            }
            model.versions.add(v);
            decider.startDrain(model, predecessor);
        }
        v.phase = Phase.AVAILABLE;
        board.changed(model, v);
    }

    /** Notes on a version that serves that its next self does not. */
    void reject(Model model, Version serving, Version successor, String reason) {
        serving.refused = successor;
        serving.reason = reason;
        board.changed(model, serving);
    }

    /** Shows what has loaded together, once nothing of it is under way, or drops all of it when anything has failed. */
    void conclude(Model model) {
        List<Version> staged = new ArrayList<>();
        String failure = null;
        for (Version wanted : model.aspired()) {
            Version v = wanted.successor == null || wanted.successor.renewal ? wanted : wanted.successor;
            if (v.staged) {
                staged.add(v);
            } else if (v.phase == Phase.TRACKED || v.loads()) {
                return;
            } else if (v.phase == Phase.FAILED || v.refused != null) {
                failure = failure == null ? "version " + v.id.version() + ": " + v.reason : failure;
            }
        }
        for (Version v : staged) {
            if (failure == null) {
                show(model, v);
            } else {
                drop(model, v, "not taken up without the others, of which one failed: " + failure);
            }
        }
    }

    /** Unloads what has loaded but is not taken up. */
    private void drop(Model model, Version v, String reason) {
        Version predecessor = v.predecessor;
        v.staged = false;
        v.aspired = false;
        v.unwanted = true;
        Version failed = new Version(v.id, v.loader);
        failed.phase = Phase.FAILED;
        failed.reason = reason;
        failed.basis = v.basis;
        if (predecessor != null) {
            predecessor.successor = null;
            v.predecessor = null;
            model.versions.add(0, v);
            decider.startUnload(model, v);
            reject(model, predecessor, failed, "reload failed: " + reason);
        } else {
            decider.startUnload(model, v);
            decider.add(model, failed);
        }
    }
}
