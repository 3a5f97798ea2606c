// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.state.ModelDependencies;
import io.nereid.lifecycle.state.ServableRegistry;
import java.util.ArrayList;
import java.util.List;

/** The callers that wait for states of versions. Confined to the manager thread. */
final class StateWaiters {
    private final ServableRegistry registry;
    private final List<SettledWaiter> settlings = new ArrayList<>();
    private final List<PhaseWaiter> waitings = new ArrayList<>();

    StateWaiters(ServableRegistry registry) {
        this.registry = registry;
        var unused = registry.listen(state -> waitings.forEach(w -> w.stateChanged(registry.map(), state)));
    }

    void add(SettledWaiter settling) {
        settlings.add(settling);
    }

    void add(PhaseWaiter waiting) {
        waitings.add(waiting);
    }

    void expire(PhaseWaiter waiting) {
        if (waitings.remove(waiting)) {
            waiting.expire(registry.map());
        }
    }

    /** Completes callers whose condition holds; returns whether models have settled for one of them. */
    boolean check(ModelDependencies dependencies) {
        waitings.removeIf(w -> w.check(registry.map()));
        boolean settled = false;
        for (SettledWaiter settling : List.copyOf(settlings)) {
            if (settling.check(dependencies)) {
                settled |= settling.hasVersions();
                settlings.remove(settling);
            }
        }
        return settled;
    }

    /** Fails all waiting callers. */
    void fail(ServingException e) {
        settlings.forEach(s -> s.fail(e));
        settlings.clear();
        waitings.forEach(w -> w.future.completeExceptionally(e));
        waitings.clear();
    }
}
