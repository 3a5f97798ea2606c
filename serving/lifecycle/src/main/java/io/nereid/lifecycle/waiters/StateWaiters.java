// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.waiters;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.state.ModelDependencies;
import io.nereid.lifecycle.state.ModelVersions;
import io.nereid.lifecycle.state.ServableRegistry;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The callers that wait for states of versions. Confined to the manager thread. */
public final class StateWaiters {
    private final ServableRegistry registry;
    private final List<SettledWaiter> settledWaiters = new ArrayList<>();
    private final List<PhaseWaiter> phaseWaiters = new ArrayList<>();

    public StateWaiters(ServableRegistry registry) {
        this.registry = registry;
        var unused = registry.listen(state -> phaseWaiters.forEach(w -> w.stateChanged(registry.map(), state)));
    }

    /** Completes {@code future} when the versions of these models that are aspired now have settled. */
    public void awaitSettled(List<ModelVersions> models, CompletableFuture<List<ServableState>> future) {
        settledWaiters.add(new SettledWaiter(models, future));
    }

    /**
     * Completes {@code future} when each reference has reached the phase or can no longer reach it. The caller runs the
     * result at the timeout, on the manager thread: it completes the future with the phases at that time.
     */
    public Runnable awaitPhase(Collection<ModelRef> refs, Phase goal, CompletableFuture<WaitResult> future) {
        PhaseWaiter waiter = new PhaseWaiter(refs, goal, future);
        phaseWaiters.add(waiter);
        return () -> {
            if (phaseWaiters.remove(waiter)) {
                waiter.expire(registry.map());
            }
        };
    }

    /** Completes callers whose condition holds; returns whether models have settled for one of them. */
    public boolean check(ModelDependencies dependencies) {
        phaseWaiters.removeIf(w -> w.check(registry.map()));
        boolean settled = false;
        // A copy: a dependent stage of the caller's future may wait again.
        for (SettledWaiter waiter : List.copyOf(settledWaiters)) {
            if (waiter.check(dependencies)) {
                settled |= waiter.hasVersions();
                settledWaiters.remove(waiter);
            }
        }
        return settled;
    }

    /** Fails all waiting callers. */
    public void fail(ServingException e) {
        settledWaiters.forEach(w -> w.fail(e));
        settledWaiters.clear();
        phaseWaiters.forEach(w -> w.fail(e));
        phaseWaiters.clear();
    }
}
