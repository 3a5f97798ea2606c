// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;

/** All who wait for versions. Confined to the deciding thread. */
final class Waiters {
    private final Board board;
    private final List<Settling> settlings = new ArrayList<>();
    private final List<Waiting> waitings = new ArrayList<>();

    Waiters(Board board) {
        this.board = board;
        var unused = board.listen(state -> waitings.forEach(w -> w.heard(board.map(), state)));
    }

    void add(Settling settling) {
        settlings.add(settling);
    }

    void add(Waiting waiting) {
        waitings.add(waiting);
    }

    void expire(Waiting waiting) {
        if (waitings.remove(waiting)) {
            waiting.expire(board.map());
        }
    }

    /** Tells those who have waited long enough; whether a model has settled for one of them. */
    boolean check(Dependencies dependencies) {
        waitings.removeIf(w -> w.check(board.map()));
        boolean settled = false;
        for (Settling settling : List.copyOf(settlings)) {
            if (settling.check(dependencies)) {
                settled |= settling.hasVersions();
                settlings.remove(settling);
            }
        }
        return settled;
    }

    /** Nobody needs to wait any more. */
    void fail(ServingException e) {
        settlings.forEach(s -> s.fail(e));
        settlings.clear();
        waitings.forEach(w -> w.future.completeExceptionally(e));
        waitings.clear();
    }
}
