// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An active sequence: its queued requests, its slot, and the implicit states that it keeps between requests. A START in
 * the middle of the queue restarts the sequence in the same slot.
 *
 * <p>Guarded by the batcher's lock, except for the states and the tensor of the id: these belong to the request in
 * flight, or are guarded by the lock when no request is in flight.
 */
final class ActiveSequence {
    final Object id;
    final ArrayDeque<SequenceJob> queue = new ArrayDeque<>();
    /** The request that was taken for a run and has not ended. */
    @Nullable SequenceJob inFlight;
    /** Its slot; null in the backlog, and after its END request was taken by the direct strategy. */
    @Nullable SequenceSlot slot;

    boolean backlogged;
    /** No more requests are accepted: END is queued, or the sequence was idle too long, cancelled or failed. */
    boolean over;

    boolean finished;
    /** When the idle time began. */
    long idleSince;

    @Nullable ActiveSequence previousIdle;

    @Nullable ActiveSequence nextIdle;

    boolean inIdleList;

    private @Nullable Tensor idTensor;
    private @Nullable Tensor @Nullable [] states;

    ActiveSequence(Object id) {
        this.id = id;
    }

    /** Returns whether its next request can be taken for a run. */
    boolean ready() {
        return inFlight == null && !queue.isEmpty();
    }

    /** Returns the tensor of the id, created once for each sequence; null if the model has no CORRID control. */
    @Nullable Tensor idTensor(SequenceControls controls) {
        if (idTensor == null) {
            idTensor = controls.ofId(id);
        }
        return idTensor;
    }

    /** Returns the value of a state; null before the first request has completed. */
    @Nullable Tensor state(int i) {
        @Nullable Tensor[] kept = states;
        return kept == null ? null : kept[i];
    }

    /** Replaces a state; takes ownership of one reference to {@code value}. */
    void state(int count, int i, Tensor value) {
        @Nullable Tensor[] kept = states;
        if (kept == null) {
            kept = new Tensor[count];
            states = kept;
        }
        Tensor before = kept[i];
        kept[i] = value;
        if (before != null) {
            before.close();
        }
    }

    /** Drops all states, when the sequence is started again. */
    void dropStates() {
        @Nullable Tensor[] kept = states;
        states = null;
        if (kept != null) {
            for (Tensor t : kept) {
                if (t != null) {
                    t.close();
                }
            }
        }
    }

    /** Releases all tensors. */
    void release() {
        dropStates();
        Tensor t = idTensor;
        idTensor = null;
        if (t != null) {
            t.close();
        }
    }

    /**
     * Removes from the queue the requests that fail together with {@code item}, or with the request in flight if that
     * is null. These are the requests after it up to, but not including, the next START, because they depend on its
     * states; with {@code whole}, also the requests before it back to its START. If no other START follows, the
     * sequence is over.
     */
    List<SequenceJob> removeDependents(@Nullable SequenceJob item, boolean whole) {
        List<SequenceJob> all = new ArrayList<>(queue);
        int from = item == null ? 0 : all.indexOf(item);
        int to = item == null ? 0 : from + 1;
        while (whole && from > 0 && !all.get(from).start) {
            from--;
        }
        while (to < all.size() && !all.get(to).start) {
            to++;
        }
        over |= to == all.size();
        List<SequenceJob> range = all.subList(from, to);
        List<SequenceJob> removed = List.copyOf(range);
        range.clear();
        queue.clear();
        queue.addAll(all);
        return removed;
    }
}
