// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import io.nereid.scheduling.execution.DeviceExecutor.ReadyQueue;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * One model at a {@link DeviceExecutor}: its request queues that wait for a thread, and the number of its runs. The
 * executor shares its threads between these, so a model with many instances or queues counts once. A scheduler creates
 * one and uses it with one executor only, whose lock guards it.
 */
public final class ModelRuns {
    /** The queues that wait; a queue is in it once for each run that it waits for. */
    final ArrayDeque<ReadyQueue> ready = new ArrayDeque<>(4);

    /** The runs in progress. */
    int running;

    /** Neighbours in the executor's line, in which a model is while one of its queues waits. */
    @Nullable ModelRuns previous;

    @Nullable ModelRuns next;

    /** Returns whether the model neither waits nor runs. */
    boolean idle() {
        return running == 0 && ready.isEmpty();
    }
}
