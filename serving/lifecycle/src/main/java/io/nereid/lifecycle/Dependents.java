// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Loader;
import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Looks after what depends on other models, once others can see what has been decided. Confined to the deciding thread. */
final class Dependents {
    private static final Logger LOG = LoggerFactory.getLogger(Dependents.class);

    private final Board board;
    private final Dependencies dependencies;
    private final Decider decider;

    Dependents(Board board, Dependencies dependencies, Decider decider) {
        this.board = board;
        this.dependencies = dependencies;
        this.decider = decider;
    }

    /** Starts what waited for its dependencies, and loads anew what was built on others than there are now. */
    void look() {
        for (Model model : board.composed()) {
            for (Version v : List.copyOf(model.versions)) {
                if (!v.aspired) {
                    continue;
                }
                renew(model, v);
                Version next = v.successor == null ? v : v.successor;
                if (next.phase == Phase.TRACKED) {
                    String circle = dependencies.circle(next);
                    if (circle != null) {
                        next.circular = true;
                        next.basis = dependencies.basis(next);
                        decider.loadFailed(model, next, circle);
                    } else if (next != v && dependencies.settled(next)) {
                        decider.startLoad(model, next);
                    }
                }
            }
            decider.advance(model);
        }
    }

    private void renew(Model model, Version v) {
        boolean serves = v.phase == Phase.AVAILABLE && v.successor == null;
        if (!serves && v.phase != Phase.FAILED) {
            return;
        }
        Version stale = serves && v.refused != null && dependencies.due(v.refused) ? v.refused : v;
        if (stale.loader == null || !dependencies.due(stale)) {
            return;
        }
        try {
            Loader again = stale.loader.again();
            if (serves) {
                decider.reload(model, v, again, stale == v);
            } else {
                Version next = new Version(again.id(), again);
                next.renewal = true;
                decider.replace(model, v, next);
            }
        } catch (RuntimeException e) {
            LOG.error("{} cannot be loaded anew", v.id, e);
            stale.basis = dependencies.basis(stale);
        }
    }
}
