// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.ServingException;
import io.nereid.spi.Loader;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Source.Aspired;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Turns a list of wanted versions into what there is to do for each. Confined to the deciding thread. */
final class Wishes {
    private static final Logger LOG = LoggerFactory.getLogger(Wishes.class);

    private final TransitionPolicy policy;
    private final Board board;
    private final Decider decider;

    Wishes(TransitionPolicy policy, Board board, Decider decider) {
        this.policy = policy;
        this.board = board;
        this.decider = decider;
    }

    void want(Model model, List<Aspired> list, boolean retry) {
        model.together = policy.allOrNothing() && model.anyAvailable();
        // What failed of the last set is part of the next one.
        boolean again = retry || (model.together && list.stream().anyMatch(a -> isNew(model, a)));
        for (Aspired a : list) {
            Version v = model.current(a.id().version());
            Loader loader = a.loader();
            if (loader != null) {
                want(model, v, loader, again);
            } else {
                ServingException error = a.error();
                refuse(
                        model,
                        v,
                        a,
                        error == null ? "the source gives neither a loader nor a reason" : error.describe());
            }
        }
    }

    private static boolean isNew(Model model, Aspired a) {
        Version v = model.current(a.id().version());
        Loader loader = a.loader();
        if (loader == null) {
            return false;
        }
        String fingerprint = loader.fingerprint();
        return v == null
                || !(v.fingerprint.equals(fingerprint)
                        || v.refused(fingerprint)
                        || (v.successor != null && v.successor.fingerprint.equals(fingerprint)));
    }

    private void want(Model model, @Nullable Version v, Loader loader, boolean retry) {
        if (v == null) {
            decider.add(model, new Version(loader.id(), loader));
            return;
        }
        boolean same = v.loader != null && v.fingerprint.equals(loader.fingerprint());
        switch (v.phase) {
            case AVAILABLE -> {
                if (same || adopts(v, loader)) {
                    if (v.successor == null || !v.successor.renewal) {
                        decider.dropSuccessor(model, v);
                    }
                    v.refused = null;
                    if (!same || !v.aspired || v.reason != null) {
                        v.aspired = true;
                        v.reason = null;
                        board.changed(model, v);
                    }
                } else {
                    v.aspired = true;
                    reload(model, v, loader, retry);
                }
            }
            case LOADING, WARMING -> {
                if (!same) {
                    decider.unwant(model, v);
                    decider.add(model, new Version(loader.id(), loader));
                }
            }
            case FAILED -> {
                if (!same || retry) {
                    decider.replace(model, v, new Version(loader.id(), loader));
                }
            }
            case TRACKED -> {
                if (!same) {
                    decider.replace(model, v, new Version(loader.id(), loader));
                }
            }
            case DRAINING, UNLOADING, GONE -> decider.add(model, new Version(loader.id(), loader));
        }
    }

    /** Whether what serves could take over what is new without being loaded anew. */
    private static boolean adopts(Version v, Loader next) {
        Loader serving = v.loader;
        if (serving == null || !Dependencies.of(next).equals(v.dependencies)) {
            return false;
        }
        try {
            if (serving.adopt(next)) {
                v.fingerprint = next.fingerprint();
                return true;
            }
        } catch (RuntimeException e) {
            LOG.warn("{} could not be changed while serving; loading it anew", v.id, e);
        }
        return false;
    }

    private void reload(Model model, Version v, Loader loader, boolean retry) {
        String fingerprint = loader.fingerprint();
        if (v.successor != null && v.successor.fingerprint.equals(fingerprint)) {
            return;
        }
        if (v.refused(fingerprint) && !retry) {
            decider.dropSuccessor(model, v);
            return;
        }
        decider.reload(model, v, loader, false);
    }

    private void refuse(Model model, @Nullable Version v, Aspired a, String reason) {
        if (v == null || v.phase == Phase.TRACKED || v.phase == Phase.FAILED) {
            if (v != null && v.phase == Phase.FAILED && v.loader == null && reason.equals(v.reason)) {
                return;
            }
            Version failed = new Version(a.id(), null);
            failed.phase = Phase.FAILED;
            failed.reason = reason;
            if (v == null) {
                decider.add(model, failed);
            } else {
                decider.replace(model, v, failed);
            }
        } else if (v.phase == Phase.AVAILABLE) {
            decider.dropSuccessor(model, v);
            v.aspired = true;
            if (!reason.equals(v.reason)) {
                v.reason = reason;
                board.changed(model, v);
            }
        }
    }
}
