// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** One instance and its places. Guarded by the batcher's lock, but where a method says otherwise. */
abstract class SequenceLane {
    final Sequences sequences;
    final int instance;
    final Slot[] slots;
    /** No new sequence gets a place here. */
    boolean removed;
    /** Its last sequence has left after it was removed, and the runner is being told. */
    boolean retiring;

    SequenceLane(Sequences sequences, int instance, int places) {
        this.sequences = sequences;
        this.instance = instance;
        this.slots = new Slot[places];
        for (int i = 0; i < places; i++) {
            slots[i] = new Slot(this, i);
        }
    }

    /** Something has changed for the sequence of a place of this instance. */
    abstract void stir(Slot slot, Outbox out, long now);

    /** Something has changed for all of them. */
    void stirAll(Outbox out, long now) {
        for (Slot slot : slots) {
            stir(slot, out, now);
        }
    }

    /** When the timer should stir this instance; {@link Sequences#NEVER} for not at all. */
    long due() {
        return Sequences.NEVER;
    }

    /** Whether no sequence has a place here and nothing runs. */
    boolean vacant() {
        for (Slot slot : slots) {
            if (slot.strand != null) {
                return false;
            }
        }
        return true;
    }

    /** Runs under way. */
    abstract int running();

    /** Runs begun. */
    abstract long batches();

    /** Requests handed on that wait for a run. */
    int queued() {
        return 0;
    }

    /** Nothing follows; without the lock. Completes when nothing runs any more. */
    CompletionStage<Void> close() {
        return CompletableFuture.completedStage(null);
    }
}
