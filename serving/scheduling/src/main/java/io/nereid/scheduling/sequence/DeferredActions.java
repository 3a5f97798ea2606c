// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Actions that are decided while a lock is held and executed after it is released, because they call other code: the
 * end of a job, a run, the thread pool or the rate limiter. Confined to one thread.
 */
final class DeferredActions {
    /** Whether an action may run a batch on this thread: only for a thread that submits a request. */
    final boolean mayRun;

    private @Nullable List<Runnable> actions;

    DeferredActions() {
        this(false);
    }

    DeferredActions(boolean mayRun) {
        this.mayRun = mayRun;
    }

    void add(Runnable action) {
        if (actions == null) {
            actions = new ArrayList<>(2);
        }
        actions.add(action);
    }

    /** Executes the actions in order; called without the lock. */
    void runAll() {
        List<Runnable> now = actions;
        if (now != null) {
            actions = null;
            now.forEach(Runnable::run);
        }
    }
}
