// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * The slots of one model instance and the strategy by which their requests are batched (Triton: {@code SequenceBatch}).
 * Guarded by the batcher's lock, except for methods that state otherwise.
 */
abstract class SequenceBatch {
    final SequenceBatcher batcher;
    final int instance;
    final SequenceSlot[] slots;
    /** Set when the instance was removed: no new sequence is assigned to its slots. */
    boolean removed;
    /** Set when the last sequence has ended after the removal; the runner is being notified. */
    boolean retiring;

    SequenceBatch(SequenceBatcher batcher, int instance, int places) {
        this.batcher = batcher;
        this.instance = instance;
        this.slots = new SequenceSlot[places];
        for (int i = 0; i < places; i++) {
            slots[i] = new SequenceSlot(this, i);
        }
    }

    /** Checks whether the sequence in a slot has a request that can run now, and if so arranges the run. */
    abstract void trySchedule(SequenceSlot slot, DeferredActions out, long now);

    /** Does the same for all slots. */
    void tryScheduleAll(DeferredActions out, long now) {
        for (SequenceSlot slot : slots) {
            trySchedule(slot, out, now);
        }
    }

    /** Returns when the timer must call {@link #tryScheduleAll}; {@link SequenceBatcher#NEVER} for not at all. */
    long due() {
        return SequenceBatcher.NEVER;
    }

    /** Returns whether all slots are free and nothing runs. */
    boolean vacant() {
        for (SequenceSlot slot : slots) {
            if (slot.sequence != null) {
                return false;
            }
        }
        return true;
    }

    /** Returns the number of runs in progress. */
    abstract int running();

    /** Returns the number of runs started. */
    abstract long batches();

    /** Returns the number of requests that were taken from their sequence and wait for a run. */
    int queued() {
        return 0;
    }

    /** Closes the instance; called without the lock. The result completes when nothing runs any more. */
    CompletionStage<Void> close() {
        return CompletableFuture.completedStage(null);
    }
}
